package badinput

import (
	"fmt"
	"strings"
)

// roles are mistakes in groups of workers. What contradicts the range or the framework of the job no schema finds.
func roles() []Case {
	const list, first, form = "spec.roles", "spec.roles[0]", "^[a-z][a-z0-9]*$"
	role := func(what, fields string, says ...string) Case {
		return refused("a role with "+what, setting(list, "[{"+fields+"}]"), says...)
	}
	beyond := func(field, value, bound string) string {
		return fmt.Sprintf("%s.%s: Invalid value: %s: %[1]s.%[2]s in body should be %[4]s", first, field, value, bound)
	}
	long := func(field string, letters int) (string, string) {
		return `"` + strings.Repeat("a", letters+1) + `"`, fmt.Sprintf("%s.%s: Too long: may not be more than %d bytes", first,
			field, letters)
	}
	tooLong := func(field, format string, letters int) Case {
		value, says := long(field, letters)
		return role(fmt.Sprintf("%s of %d letters", field, letters+1), `"name":"ps",`+fmt.Sprintf(format, value), says).blind()
	}
	nameTooLong, saysNameTooLong := long("name", 12)
	cases := []Case{
		refused("nine roles", setting(list, many(9, `{"name":"r%d"}`)), list+": Too many: 9: must have at most 8 items").blind(),
		refused("a role twice", setting(list, `[{"name":"ps"},{"name":"ps"}]`), list+`[1]: Duplicate value: {"name":"ps"}`),
		role("no name", `"replicas":1`, first+".name: Required value").blind(),
		role("a name in capitals", `"name":"PS"`, badly(first+".name", "PS", form)),
		role("a name with a dash", `"name":"a-b"`, badly(first+".name", "a-b", form)),
		role("a name of 13 letters", `"name":`+nameTooLong, saysNameTooLong).blind(),
		role("no workers", `"name":"ps","replicas":0`, beyond("replicas", "0", "greater than or equal to 1")).decoded(),
		role("32 workers", `"name":"ps","replicas":32`, beyond("replicas", "32", "less than or equal to 31")),
		role("two workers that lead", `"name":"chief","replicas":2,"lead":true`, first+".replicas: Invalid value: replicas (2) of "+
			"role chief must be 1, because the role leads, and one worker leads a job: set replicas to 1, or remove lead"),
		role("the name of the one that leads", `"name":"master"`, first+".name: Invalid value: role master is the name for the "+
			"worker that leads: set lead to true, or choose another name"),
		tooLong("image", `"image":%s`, 1024),
		tooLong("command[0]", `"command":[%s]`, 4096),
		tooLong("args[0]", `"args":[%s]`, 4096),
		role("a variable without a name", `"name":"ps","env":[{"value":"1"}]`, first+".env[0].name: Required value").blind(),
		role("a variable that is none", `"name":"ps","env":[{"name":"A-B"}]`, badly(first+".env[0].name", "A-B",
			"^[A-Za-z_][A-Za-z0-9_]*$")),
		role("a variable twice", `"name":"ps","env":[{"name":"A"},{"name":"A"}]`, first+`.env[1]: Duplicate value: {"name":"A"}`),
		role("65 words of a command", `"name":"ps","command":`+many(65, `"%d"`), first+".command: Too many: 65: must have at most "+
			"64 items").blind(),
		role("65 arguments", `"name":"ps","args":`+many(65, `"%d"`), first+".args: Too many: 65: must have at most 64 items").blind(),
		role("33 variables", `"name":"ps","env":`+many(33, `{"name":"A%d"}`), first+".env: Too many: 33: must have at most 32 "+
			"items").blind(),
		role("a claim without name", `"name":"ps","resources":{"claims":[{"request":"r"}]}`,
			first+".resources.claims[0].name: Required value").blind(),
		named("too long for its role", strings.Repeat("a", 53), `,"spec":{"roles":[{"name":"launcher"}]}`,
			"is too long (53 characters) for role launcher: the host name NAME-launcher-31 must not exceed 63 characters; shorten "+
				"the name or that of the role"),
	}
	cases = append(cases, claimedTooMuch("a role", first+".resources.claims", func(claims string) string {
		return setting(list, `[{"name":"ps","resources":{"claims":`+claims+`}}]`)
	})...)
	cases = append(cases, claimedTooMuch("a master", "spec.master.resources.claims", func(claims string) string {
		return setting("spec.master.resources.claims", claims)
	})...)
	for _, taken := range []string{"worker", "core", "surplus", "merge", "other"} {
		cases = append(cases, role("the name "+taken, `"name":"`+taken+`"`, fmt.Sprintf("%s.name: Invalid value: %q: name %[2]s "+
			"is taken: Tideline calls other pods so; choose another name", first, taken)))
	}
	return cases
}

// claimedTooMuch are mistakes in the claims at a path, which some workers have in place of the template's.
func claimedTooMuch(whose, path string, within func(claims string) string) []Case {
	long := strings.Repeat("a", 1025)
	const tooLong = ": Too long: may not be more than 1024 bytes"
	return []Case{
		refused(whose+" with 65 claims", within(many(65, `{"name":"c%d"}`)),
			path+": Too many: 65: must have at most 64 items").blind(),
		refused(whose+" with a claim of a long name", within(`[{"name":"`+long+`"}]`), path+"[0].name"+tooLong).blind(),
		refused(whose+" with a claim of a long request", within(`[{"name":"c","request":"`+long+`"}]`),
			path+"[0].request"+tooLong).blind(),
	}
}
