package badinput

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const (
	dataName    = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
	dataVersion = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"
)

// badly says that a field has not the form of its pattern.
func badly(field, value, pattern string) string {
	return fmt.Sprintf("%s: Invalid value: %q: %[1]s in body should match '%[3]s'", field, value, pattern)
}

// dataOfProfiles are mistakes in the data that a profile lists.
func dataOfProfiles() []Case {
	const list, versions, first = "spec.dataSets", "spec.dataSets[0].versions", "spec.dataSets[0].versions[0]"
	set := func(what, fields string, says ...string) Case {
		return refused("a data set with "+what, setting(list, "[{"+fields+"}]"), says...)
	}
	version := func(what, fields string, says ...string) Case {
		return set(what, `"name":"a","versions":[{`+fields+`}]`, says...)
	}
	oneOf := first + ".claim: Invalid value: version 1 must have one of claim and prefix: "
	samePlace := versions + ": Invalid value: two versions have the same place, or one is within that of another, so that new " +
		"data would change what a version is: give each version a claim, a folder or a prefix of its own"
	placed := func(what, one, two string, says ...string) Case {
		return set("versions: "+what, `"name":"a","versions":[{"version":"1",`+one+`},{"version":"2",`+two+`}]`, says...)
	}
	folder := func(value string) Case {
		return version("folder "+value, fmt.Sprintf(`"version":"1","claim":"c","folder":%q`, value), fmt.Sprintf("%s.folder: "+
			"Invalid value: %q: folder must be within its claim, and written in one way: leave out a slash at its begin and end, //, . "+
			"and ..", first, value))
	}
	prefix := func(value string) Case {
		return version("prefix "+value, fmt.Sprintf(`"version":"1","prefix":%q`, value), fmt.Sprintf("%s.prefix: Invalid value: %q: "+
			"prefix must be SCHEME://BUCKET/FOLDER without a slash at its end, .., an account, a variable or a query: jobs of the "+
			"whole team see it, so that keys belong into a Secret", first, value))
	}
	const name, good = list + "[0].name", `"versions":[{"version":"1","claim":"c"}]`
	return []Case{
		refused("17 data sets", setting(list, many(17, `{"name":"d%d",`+good+`}`)),
			list+": Too many: 17: must have at most 16 items").blind(),
		refused("a data set twice", setting(list, `[{"name":"a",`+good+`},{"name":"a",`+good+`}]`),
			list+`[1]: Duplicate value: {"name":"a"}`),
		set("no name", good, name+": Required value").blind().decoded(badly(name, "", dataName)),
		set("a name in capitals", `"name":"A",`+good, badly(name, "A", dataName)),
		set("a name of 33 letters", `"name":"`+strings.Repeat("a", 33)+`",`+good,
			name+": Too long: may not be more than 32 bytes").blind(),
		set("no versions", `"name":"a"`, versions+": Required value").blind(),
		set("an empty list of versions", `"name":"a","versions":[]`, versions+": Invalid value: 0: "+versions+
			" in body should have at least 1 items"),
		set("17 versions", `"name":"a","versions":`+many(17, `{"version":"%d","claim":"c"}`),
			versions+": Too many: 17: must have at most 16 items").blind(),
		set("a version twice", `"name":"a","versions":[{"version":"1","claim":"c"},{"version":"1","claim":"d"}]`,
			versions+`[1]: Duplicate value: {"version":"1"}`),
		version("a version without a name", `"claim":"c"`, first+".version: Required value").blind().decoded(
			badly(first+".version", "", dataVersion)),
		version("a version in capitals", `"version":"V1","claim":"c"`, badly(first+".version", "V1", dataVersion)),
		version("a version of 33 letters", `"version":"`+strings.Repeat("1", 33)+`","claim":"c"`,
			first+".version: Too long: may not be more than 32 bytes").blind(),
		version("no place", `"version":"1"`, oneOf+"set one of the two"),
		version("two places", `"version":"1","claim":"c","prefix":"s3://a/b"`, oneOf+"remove one of the two"),
		version("a folder of no claim", `"version":"1","folder":"a","prefix":"s3://a/b"`,
			first+".folder: Invalid value: folder is one of a claim: set claim, or write the folder at the end of prefix"),
		version("an empty claim", `"version":"1","claim":""`, tooShort(first+".claim")).decoded(oneOf + "set one of the two"),
		version("an empty folder", `"version":"1","claim":"c","folder":""`, tooShort(first+".folder"), fmt.Sprintf("%s.folder: "+
			`Invalid value: "": folder must be within its claim, and written in one way: leave out a slash at its begin and end, //, . `+
			"and ..", first)).decoded(),
		version("a claim in capitals", `"version":"1","claim":"C"`, badly(first+".claim", "C", dataVersion)),
		version("a claim of 129 letters", `"version":"1","claim":"`+strings.Repeat("c", 129)+`"`,
			first+".claim: Too long: may not be more than 128 bytes").blind(),
		version("a folder of 129 letters", `"version":"1","claim":"c","folder":"`+strings.Repeat("c", 129)+`"`,
			first+".folder: Too long: may not be more than 128 bytes").blind(),
		version("a prefix of 257 letters", `"version":"1","prefix":"s3://`+strings.Repeat("c", 252)+`"`,
			first+".prefix: Too long: may not be more than 256 bytes").blind(),
		folder("/a"), folder("a/"), folder("../a"), folder("a/../b"), folder("a//b"), folder("./a"), folder(".."),
		prefix("s3://a/"), prefix("s3://a/../b"), prefix("s3://key:secret@a/b"), prefix("a/b"), prefix("s3:/a"),
		prefix("https://a/b?token=c"), prefix("s3://a/$(KEY)"),
		placed("the same claim", `"claim":"c"`, `"claim":"c"`, samePlace),
		placed("a folder within another", `"claim":"c","folder":"a"`, `"claim":"c","folder":"a/b"`, samePlace),
		placed("a folder and its claim", `"claim":"c","folder":"a"`, `"claim":"c"`, samePlace),
		placed("a prefix within another", `"prefix":"s3://a"`, `"prefix":"s3://a/b"`, samePlace),
	}
}

// ProfileUpdates returns every case of a change of ResourceQuotaProfile that is refused.
func ProfileUpdates() []Update {
	const two = `"dataSets":[{"name":"a","versions":[{"version":"1","claim":"c"},{"version":"2","claim":"c2"}]}]`
	used := func(jobs string) string {
		return `{"spec":{` + two + `},"status":{"dataSets":[{"name":"a","version":"2","jobs":0},` +
			`{"name":"a","version":"1","jobs":` + jobs + `}]}}`
	}
	const (
		inUse = "spec.dataSets: Invalid value: a version of a data set that jobs use cannot be removed, and status.dataSets says " +
			"which jobs use what: wait until they have ended, or delete them"
		moved = "spec.dataSets[0].versions[0]: Invalid value: version 1 cannot get another place, because what jobs trained on would " +
			"not be known: add a version"
		second = `{"version":"2","claim":"c2"}`
	)
	to := func(versions string) string {
		return setting("spec.dataSets", `[{"name":"a","versions":[`+versions+`]}]`)
	}
	return updatesOf(v1beta1.ResourceQuotaProfileKind, []Update{
		changed("a version that is used, removed", used("1"), to(second), inUse),
		changed("all data of a version that is used, removed", used("1"), setting("spec.dataSets", "null"), inUse),
		changed("another claim", used("0"), to(`{"version":"1","claim":"d"},`+second), moved),
		changed("a folder added", used("0"), to(`{"version":"1","claim":"c","folder":"a"},`+second), moved),
		changed("a prefix for a claim", used("0"), to(`{"version":"1","prefix":"s3://a"},`+second), moved),
	})
}

// AcceptedByProfiles returns changes of ResourceQuotaProfile that the same rules let pass.
func AcceptedByProfiles() []Update {
	const versions = `{"spec":{"dataSets":[{"name":"a","versions":[{"version":"1","claim":"c"},{"version":"2","claim":"c2"}]}]}`
	const first, second = `{"version":"1","claim":"c"}`, `{"version":"2","claim":"c2"}`
	to := func(versions string) string {
		return setting("spec.dataSets", `[{"name":"a","versions":[`+versions+`]}]`)
	}
	return updatesOf(v1beta1.ResourceQuotaProfileKind, []Update{
		changed("a version that is not used, removed", versions+`,"status":{"dataSets":[{"name":"a","version":"1","jobs":1}]}}`,
			to(first), ""),
		changed("a version added", versions+`,"status":{"dataSets":[{"name":"a","version":"1","jobs":1}]}}`,
			to(first+","+second+`,{"version":"3","claim":"c3"}`), ""),
		changed("something else, of a profile that lost a version that is used",
			`{"spec":{},"status":{"dataSets":[{"name":"a","version":"1","jobs":1}]}}`, setting("spec.queue.weight", "3"), ""),
	})
}

// dataOfJobs are mistakes in the data that a job names.
func dataOfJobs() []Case {
	const list, first = "spec.dataSets", "spec.dataSets[0]"
	data := func(what, fields string, says ...string) Case {
		return refused("data with "+what, setting(list, "[{"+fields+"}]"), says...)
	}
	path := func(value string) Case {
		return data("mountPath "+value, fmt.Sprintf(`"name":"a","version":"1","mountPath":%q`, value), fmt.Sprintf("%s.mountPath: "+
			"Invalid value: %q: mountPath must be an absolute path without :, $ or .., and neither /etc nor in /etc/tideline, where "+
			"Tideline mounts its own files: choose another path", first, value))
	}
	const short = first + ".mountPath"
	return []Case{
		refused("7 data sets", setting(list, many(7, `{"name":"d%d","version":"1"}`)),
			list+": Too many: 7: must have at most 6 items").blind(),
		refused("data twice", setting(list, `[{"name":"a","version":"1"},{"name":"a","version":"2"}]`),
			list+`[1]: Duplicate value: {"name":"a"}`),
		data("no name", `"version":"1"`, first+".name: Required value").blind().decoded(badly(first+".name", "", dataName)),
		data("no version", `"name":"a"`, first+".version: Required value").blind().decoded(badly(first+".version", "", dataVersion)),
		data("a name in capitals", `"name":"A","version":"1"`, badly(first+".name", "A", dataName)),
		data("a name of 33 letters", `"name":"`+strings.Repeat("a", 33)+`","version":"1"`,
			first+".name: Too long: may not be more than 32 bytes").blind(),
		data("a version in capitals", `"name":"a","version":"V"`, badly(first+".version", "V", dataVersion)),
		data("a version of 33 letters", `"name":"a","version":"`+strings.Repeat("1", 33)+`"`,
			first+".version: Too long: may not be more than 32 bytes").blind(),
		data("an empty mountPath", `"name":"a","version":"1","mountPath":""`, short+`: Invalid value: "": `+short+
			" in body should be at least 2 chars long", short+`: Invalid value: "": mountPath must be an absolute path without :, $ or `+
			".., and neither /etc nor in /etc/tideline, where Tideline mounts its own files: choose another path").decoded(),
		data("a mountPath of 254 letters", `"name":"a","version":"1","mountPath":"/`+strings.Repeat("a", 253)+`"`,
			short+": Too long: may not be more than 253 bytes").blind(),
		path("data"), path("/data/../etc"), path("/data/"), path("/a:b"), path("/etc"), path("/etc/tideline"), path("/in/$(KEY)"),
		path("/etc/tideline/x"),
	}
}
