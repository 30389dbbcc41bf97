package badinput

import (
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// ReportCases returns every case of CostReport.
func ReportCases() []Case {
	return casesOf(v1beta1.CostReportKind, reportNames(), due(), contents(), references(), mails(), formerReportNames())
}

func reportNames() []Case {
	const form = "must be a DNS-1123 label, because it is a part of the names of files and of a ConfigMap: at most 63 lower-case " +
		"letters, digits and dashes, without dots"
	return []Case{named("with a dot", "weekly.ads", "", form), named("of 64 letters", strings.Repeat("a", 64), "", form)}
}

// due are mistakes in when a report is made, and of what.
func due() []Case {
	const window = "spec.window"
	wrong := func(what, written, decoded string) Case {
		says := func(value string) string {
			return window + ": Invalid value: " + strconv.Quote(value) + ": window must be from 1h to 2208h, which are 92 days"
		}
		return refused("a window "+what, setting(window, strconv.Quote(written)), says(written)).decoded(says(decoded))
	}
	return append([]Case{
		empty("spec.schedule").decoded(), tooLong("spec.schedule", 128), empty("spec.timeZone").decoded(), tooLong("spec.timeZone", 64),
		wrong("of minutes", "59m", "59m0s"), wrong("of months", "2209h", "2209h0m0s"),
		tooSmall("spec.top", 0, 1).decoded(), tooLarge("spec.top", 201, 200),
	}, within([]limits{{"spec.historyLimit", 1, 520}})...)
}

// contents are mistakes in what a report has.
func contents() []Case {
	const profiles, name = "spec.profiles", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	cases := []Case{
		refused("257 profiles", setting(profiles, many(257, `"p%d"`)), profiles+": Too many: 257: must have at most 256 items").blind(),
		refused("a profile of 64 letters", setting(profiles, `["`+strings.Repeat("a", 64)+`"]`),
			profiles+"[0]: Too long: may not be more than 63 bytes").blind(),
		refused("a profile in capitals", setting(profiles, `["Ads"]`), profiles+`[0]: Invalid value: "Ads": `+profiles+
			`[0] in body should match '`+name+`'`),
	}
	for _, list := range []struct {
		path  string
		known []string
	}{
		{"spec.rankings", []string{"Utilization", "Cost", "Waste"}}, {"spec.groupBy", []string{"User", "Team", "Task"}},
		{"spec.formats", []string{"HTML", "CSV", "JSON", "FOCUS"}},
	} {
		most := strconv.Itoa(len(list.known))
		more := `["` + strings.Join(append(list.known, "Other"), `","`) + `"]`
		cases = append(cases,
			refused("an empty "+list.path, setting(list.path, "[]"),
				list.path+": Invalid value: 0: "+list.path+" in body should have at least 1 items").decoded(),
			refused("an unknown one of "+list.path, setting(list.path, `["Other"]`), unsupported(list.path+"[0]", "Other", list.known...)).
				blind(),
			refused("one too many of "+list.path, setting(list.path, more),
				unsupported(list.path+"["+most+"]", "Other", list.known...),
				list.path+": Too many: "+strconv.Itoa(len(list.known)+1)+": must have at most "+most+" items").blind())
	}
	return cases
}

// references are mistakes in which objects are named.
func references() []Case {
	const name = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
	cases := []Case{
		refused("no spec", `{"spec":null}`, "spec: Required value").blind().decoded(
			tooShort("spec.priceListRef.name")),
		refused("no price list", setting("spec.priceListRef", "null"), "spec.priceListRef: Required value").blind().decoded(
			tooShort("spec.priceListRef.name")),
	}
	for _, ref := range [][2]string{{"spec.priceListRef", `{"name":null}`}, {"spec.directoryRef", "{}"}} {
		path, nameless := ref[0], ref[1]
		cases = append(cases,
			refused(path+" without a name", setting(path, nameless), path+".name: Required value").blind().
				decoded(tooShort(path+".name")),
			empty(path+".name"),
			tooLong(path+".name", 253), mismatch(path+".name", "../etc", name))
	}
	return cases
}

// mails are mistakes in who gets a report.
func mails() []Case {
	const (
		mail    = "spec.mail"
		server  = mail + ".smtpSecretRef.name"
		address = `^[^@\s<>,;:"]+@[^@\s<>,;:"]+$`
		name    = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
	)
	with := func(what, fields string, says ...string) Case {
		return refused("mail with "+what, setting(mail, "{"+fields+"}"), says...)
	}
	const secret, from, to = `"smtpSecretRef":{"name":"smtp"}`, `"from":"t@example.com"`, `"to":["a@example.com"]`
	notOne := func(path, word string) string {
		return path + ": Invalid value: " + strconv.Quote(word) + ": " + path + " in body should match '" + address + "'"
	}
	long := strings.Repeat("a", 250) + "@b.cd"
	return []Case{
		with("nobody", secret+","+from, mail+": Invalid value: mail has no recipients: name some in to, or set personal"),
		with("no server", from+","+to, mail+".smtpSecretRef: Required value").blind().decoded(tooShort(server)),
		with("a server without a name", `"smtpSecretRef":{},`+from+","+to, server+": Required value").blind().decoded(tooShort(server)),
		with("an empty server", `"smtpSecretRef":{"name":""},`+from+","+to, tooShort(server)),
		with("a server in capitals", `"smtpSecretRef":{"name":"SMTP"},`+from+","+to,
			server+`: Invalid value: "SMTP": `+server+" in body should match '"+name+"'"),
		with("a server of 254 letters", `"smtpSecretRef":{"name":"`+strings.Repeat("a", 254)+`"},`+from+","+to,
			server+": Too long: may not be more than 253 bytes").blind(),
		with("no sender", secret+","+to, mail+".from: Required value").blind().decoded(notOne(mail+".from", "")),
		with("a sender that is not an address", secret+","+to+`,"from":"tideline"`, notOne(mail+".from", "tideline")),
		with("a sender of 255 letters", secret+","+to+`,"from":"`+long+`"`,
			mail+".from: Too long: may not be more than 254 bytes").blind(),
		with("a recipient that is not an address", secret+","+from+`,"to":["Ann <ann@example.com>"]`,
			notOne(mail+".to[0]", "Ann <ann@example.com>")),
		with("a recipient of 255 letters", secret+","+from+`,"to":["`+long+`"]`,
			mail+".to[0]: Too long: may not be more than 254 bytes").blind(),
		with("101 recipients", secret+","+from+`,"to":`+many(101, `"a%d@example.com"`),
			mail+".to: Too many: 101: must have at most 100 items").blind(),
	}
}
