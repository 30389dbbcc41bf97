package badinput

import "strings"

// storeTypes are those that there are.
var storeTypes = []string{"S3", "File", "Claim"}

// stores are mistakes in where a store is and who reads it.
func stores() []Case {
	const (
		kind, s3, file = "spec.store.type", "spec.store.s3", "spec.store.file"
		claimed        = "spec.store.claim: Invalid value: claim goes with type Claim, and with it alone: set type to Claim and name " +
			"the PersistentVolumeClaim in claim"
		volume   = `"claim":{"name":"models"}`
		bucketed = s3 + ": Invalid value: s3 goes with type S3, and with it alone: set type to S3 and describe the bucket in s3"
		filed    = file + ": Invalid value: file goes with type File, and with it alone: set type to File and name the " +
			"folder in file"
		folder = `"file":{"path":"/models"}`
	)
	store := func(what, fields string, says ...string) Case {
		return refused("store: "+what, setting("spec.store", `{`+fields+`}`), says...)
	}
	return append([]Case{
		refused("no store", setting("spec.store", "null"), "spec.store: Required value").blind().decoded(
			unsupported(kind, "", storeTypes...)),
		refused("no type", setting(kind, "null"), kind+": Required value").blind().decoded(unsupported(kind, "", storeTypes...)),
		unknown(kind, "GS", storeTypes...),
		store("no bucket for type S3", `"s3":null`, bucketed),
		store("a folder for type S3", folder, filed),
		store("no folder for type File", `"type":"File","s3":null`, filed),
		store("a bucket for type File", `"type":"File",`+folder, bucketed),
		store("a claim for type S3", volume, claimed),
		store("a claim for type File", `"type":"File","s3":null,`+folder+`,`+volume, claimed),
		store("no claim for type Claim", `"type":"Claim","s3":null`, claimed),
		store("a bucket for type Claim", `"type":"Claim",`+volume, bucketed),
		store("a folder for type Claim", `"type":"Claim","s3":null,`+folder+`,`+volume, filed),
		store("type File for a bucket", `"type":"File"`, bucketed, filed),
	}, append(buckets(), append(paths(), claims()...)...)...)
}

// buckets are mistakes in a store of type S3.
func buckets() []Case {
	const (
		bucket, region, endpoint = "spec.store.s3.bucket", "spec.store.s3.region", "spec.store.s3.endpoint"
		secret, name             = "spec.store.s3.credentialsRef", "spec.store.s3.credentialsRef.name"
	)
	misnamed := func(value string) string {
		return bucket + `: Invalid value: "` + value + `": bucket (` + value +
			") must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and dashes"
	}
	return []Case{
		refused("no name of the bucket", setting(bucket, "null"), bucket+": Required value").blind().decoded(misnamed("")),
		refused("an empty bucket", setting(bucket, `""`), misnamed("")),
		refused("a bucket in capitals", setting(bucket, `"Models"`), misnamed("Models")),
		tooLong(bucket, 63),
		refused("no Secret", setting(secret, "null"), secret+": Required value").blind().decoded(tooShort(name)),
		refused("a Secret without a name", setting(secret, `{"name":null}`), name+": Required value").blind().decoded(tooShort(name)),
		empty(name),
		tooLong(name, 253),
		mismatch(name, "Model_Store", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
		tooLong(region, 64),
		mismatch(region, "Frankfurt", "^[a-z0-9-]+$"),
		tooLong(endpoint, 256),
		mismatch(endpoint, "https://s3.example/path", `^https?://[A-Za-z0-9.\[\]:-]+/?$`),
	}
}

// paths are mistakes in a store of type File.
func paths() []Case {
	const path = "spec.store.file.path"
	filed := func(what, file string, says ...string) Case {
		return refused("a folder "+what, setting("spec.store", `{"type":"File","s3":null,"file":`+file+`}`), says...)
	}
	relative := func(value string) string {
		return path + `: Invalid value: "` + value + `": path (` + value + ") must be absolute"
	}
	return []Case{
		filed("without a path", `{}`, path+": Required value").blind().decoded(relative("")),
		filed("that is not absolute", `{"path":"models"}`, relative("models")),
		filed("of 513 letters", `{"path":"/`+strings.Repeat("m", 512)+`"}`, path+": Too long: may not be more than 512 bytes").blind(),
	}
}

// claims are mistakes in a store of type Claim.
func claims() []Case {
	const name, path, must = "spec.store.claim.name", "spec.store.claim.mountPath", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
	claimed := func(what, claim string, says ...string) Case {
		return refused("a claim "+what, setting("spec.store", `{"type":"Claim","s3":null,"claim":`+claim+`}`), says...)
	}
	mounted := func(what, at string) Case {
		return claimed(what, `{"name":"models","mountPath":"`+at+`"}`, path+`: Invalid value: "`+at+`": mountPath (`+at+
			") must be an absolute path below /, without colons and without ..")
	}
	return []Case{
		claimed("without a name", `{}`, name+": Required value").blind().decoded(tooShort(name)),
		claimed("with an empty name", `{"name":""}`, tooShort(name)),
		claimed("in capitals", `{"name":"Models"}`, name+`: Invalid value: "Models": `+name+" in body should match '"+must+"'"),
		claimed("of 254 letters", `{"name":"`+strings.Repeat("m", 254)+`"}`,
			name+": Too long: may not be more than 253 bytes").blind(),
		mounted("at a path that is not absolute", "models"),
		mounted("at the root", "/"),
		mounted("at a path with a colon", "/models:ro"),
		mounted("at a path that leads up", "/models/../etc"),
		claimed("at a path of 513 letters", `{"name":"models","mountPath":"/`+strings.Repeat("m", 512)+`"}`,
			path+": Too long: may not be more than 512 bytes").blind(),
	}
}

// folders are mistakes in where increments and full models are in a store.
func folders() []Case {
	const (
		prefix, marker   = "spec.store.prefix", "spec.store.completionMarker"
		increments, full = "spec.store.increments", "spec.store.full"
		folder           = `^[A-Za-z0-9][A-Za-z0-9!_.*'()=-]*(/[A-Za-z0-9!_*'()=-][A-Za-z0-9!_.*'()=-]*)*/$`
	)
	outside := func(path string) Case {
		return refused("a prefix of "+path, setting(prefix, `"`+path+`"`), prefix+`: Invalid value: "`+path+`": prefix (`+path+
			") must be a path in the bucket: without a slash at its beginning, and without ..")
	}
	return []Case{
		tooLong(prefix, 512),
		mismatch(prefix, "ctr v2", `^[A-Za-z0-9!_.*'()/=-]*$`),
		outside("/ctr"),
		outside("ads/../ctr"),
		tooLong(increments, 256),
		mismatch(increments, "inc", folder),
		mismatch(increments, "", folder).decoded(increments +
			": Invalid value: increments () must be a folder, and another than full (full/)"),
		tooLong(full, 256),
		mismatch(full, "../full/", folder),
		mismatch(full, "", folder).decoded(increments +
			": Invalid value: increments (inc/) must be a folder, and another than full ()"),
		refused("one folder for both", setting(increments, `"full/"`),
			increments+": Invalid value: increments (full/) must be a folder, and another than full (full/)"),
		empty(marker).decoded(),
		tooLong(marker, 128),
		mismatch(marker, "a/b", `^[A-Za-z0-9_][A-Za-z0-9!_.*'()=-]*$`),
	}
}
