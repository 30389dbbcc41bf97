package badinput

// local is a store in a folder of the operator's own.
const local = `"provider":"file","credentialsSecretName":null`

// stores are mistakes in where a store is and who reads it.
func stores() []Case {
	const (
		provider, bucket, secret = "spec.store.provider", "spec.store.bucket", "spec.store.s3.credentialsRef"
		needed                   = secret + ": Invalid value: a store of provider s3 needs credentialsSecretName: name a Secret of " +
			"this namespace with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the operator's own identity is never used"
		foreign = provider + ": Invalid value: region, endpoint and credentialsSecretName are for provider s3 and not for provider " +
			"file: remove them"
		named = ") must be the name of a bucket for provider s3: 3 to 63 lower-case letters, digits, dots and dashes"
	)
	store := func(what, fields string, says ...string) Case {
		return refused("store: "+what, setting("spec.store", `{`+fields+`}`), says...)
	}
	return []Case{
		refused("no store", setting("spec.store", "null"), "spec.store: Required value").blind().decoded(
			tooShort(bucket), unsupported(provider, "", "s3", "file")),
		refused("no provider", setting(provider, "null"), provider+": Required value").blind().decoded(
			unsupported(provider, "", "s3", "file")),
		unknown(provider, "gs", "s3", "file"),
		refused("no bucket", setting(bucket, "null"), bucket+": Required value").blind().decoded(tooShort(bucket),
			bucket+": Invalid value: bucket ("+named),
		store("an empty bucket", `"bucket":""`, tooShort(bucket), bucket+": Invalid value: bucket ("+named),
		tooLong(bucket, 512),
		store("a bucket in capitals", `"bucket":"Models"`, bucket+": Invalid value: bucket (Models"+named),
		store("a folder that is not absolute", local+`,"bucket":"models"`,
			bucket+": Invalid value: bucket (models) must be an absolute path for provider file"),
		store("no Secret", `"credentialsSecretName":null`, needed),
		store("a Secret for a folder", `"provider":"file","bucket":"/models"`, foreign),
		store("a region for a folder", local+`,"bucket":"/models","region":"eu-central-1"`, foreign),
		store("an endpoint for a folder", local+`,"bucket":"/models","endpoint":"https://s3.example"`, foreign),
		empty(secret).decoded(needed),
		tooLong(secret, 253),
		mismatch(secret, "Model_Store", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
		tooLong("spec.store.region", 64),
		mismatch("spec.store.region", "Frankfurt", "^[a-z0-9-]+$"),
		tooLong("spec.store.endpoint", 256),
		mismatch("spec.store.endpoint", "https://s3.example/path", `^https?://[A-Za-z0-9.\[\]:-]+/?$`),
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
