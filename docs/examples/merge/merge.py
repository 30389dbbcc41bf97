"""Merges increments that are tables of rows, as JSON, into a full model. Every pod takes every COUNT-th row."""

import gzip, json, os, time
import boto3

env = os.environ
index, count = int(env["TIDELINE_INDEX"]), int(env["TIDELINE_COUNT"])
bucket, out, marker = env["TIDELINE_STORE_BUCKET"], env["TIDELINE_OUTPUT_PATH"], env["TIDELINE_COMPLETION_MARKER"]
region, endpoint = env.get("TIDELINE_STORE_REGION"), env.get("TIDELINE_STORE_ENDPOINT")
store = boto3.client("s3", region_name=region, endpoint_url=endpoint)

def keys(folder):
    pages = store.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=folder)
    return [o["Key"] for page in pages for o in page.get("Contents", []) if o["Key"] != folder + marker]

def part(i):
    return f"{out}part-{i}-of-{count}"

last = env["TIDELINE_LAST_FULL_PATH"]             # empty where there is no full model yet
inputs = keys(last) if last else []
with gzip.open(env["TIDELINE_INCREMENTS_FILE"], "rt") as names:
    inputs += [env["TIDELINE_INCREMENTS_PATH"] + name.rstrip("\n") for name in names]

merged = {}
for key in inputs:                                # in their order: what was written later holds
    rows = json.load(store.get_object(Bucket=bucket, Key=key)["Body"])
    merged.update({row: value for row, value in rows.items() if int(row) % count == index})
store.put_object(Bucket=bucket, Key=part(index), Body=json.dumps(merged).encode())

if index == 0:
    parts = {part(i) for i in range(count)}
    while not parts <= set(keys(out)):            # the others write theirs
        time.sleep(5)
    for key in set(keys(out)) - parts:            # of an earlier attempt of this run, with another number of pods
        store.delete_object(Bucket=bucket, Key=key)
    store.put_object(Bucket=bucket, Key=out + marker, Body=b"")   # last of all
