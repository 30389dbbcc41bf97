package mail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Person is what the directory knows of a user.
type Person struct {
	// Mail is an address, in the form of [ParseAddress]; empty without a usable one.
	Mail string
	// Team that the user is of; empty for none.
	Team string
	// Leader of the user, another user of the directory; empty for none.
	Leader string
}

// Directory maps users, by the names that owners of jobs have, to what is known of them.
type Directory map[string]Person

// ParseDirectory reads a directory: for each user the fields mail, team and leader. One that is not of this form is an error,
// which names every field that is wrong. A malformed mail address or a leader who cannot be one affects no other user: its user
// has none, and it is listed.
func ParseDirectory(content []byte) (d Directory, badMails []string, err error) {
	encoded, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, nil, fmt.Errorf("the directory is not YAML: %s: write for each user a mapping of mail, team and leader",
			clip(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	var people map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &people); err != nil {
		return nil, nil, errors.New("the directory is not a mapping: write for each user a mapping of mail, team and leader")
	}
	d = make(Directory, len(people))
	var wrong []error
	for _, user := range slices.Sorted(maps.Keys(people)) {
		path := fmt.Sprintf("user %q", clip(user))
		person, faults := parsePerson(people[user])
		for _, fault := range faults {
			wrong = append(wrong, fmt.Errorf("the directory: %s: %w", path, fault))
		}
		if address, err := ParseAddress(person.Mail); err == nil {
			person.Mail = address
		} else if len(faults) == 0 {
			badMails = append(badMails, fmt.Sprintf("%s: mail %s", path, err))
			person.Mail = ""
		}
		d[user] = person
	}
	badMails = append(badMails, d.dropLeaders()...)
	if err := errors.Join(wrong...); err != nil {
		return nil, nil, err
	}
	return d, badMails, nil
}

// dropLeaders drops leaders who cannot be any: those whom the directory does not have, and all of a circle. It returns what was
// wrong.
func (d Directory) dropLeaders() (wrong []string) {
	for _, user := range slices.Sorted(maps.Keys(d)) {
		leader := d[user].Leader
		why := ""
		switch _, known := d[leader]; {
		case leader == "":
		case leader == user:
			why = "is that user: name another, or leave leader out"
		case !known:
			why = "is not in the directory: add that user, or leave leader out"
		case d.isAbove(user, leader):
			why = "is led by that user, in the end: leave leader out of one of them"
		}
		if why == "" {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("user %q: leader %q %s", clip(user), clip(leader), why))
		person := d[user]
		person.Leader = ""
		d[user] = person
	}
	return wrong
}

// isAbove tells whether a user leads another, or leads who does.
func (d Directory) isAbove(user, other string) bool {
	for range d {
		if other = d[other].Leader; other == "" || other == user {
			break
		}
	}
	return other != "" && other == user
}

// PeopleOf are the users whom a user leads, and those whom they lead, in order.
func (d Directory) PeopleOf(leader string) []string {
	var people []string
	for user := range d {
		if user != leader && d.isAbove(leader, user) {
			people = append(people, user)
		}
	}
	slices.Sort(people)
	return people
}

// PeopleByLeader are [Directory.PeopleOf] of all who lead anybody, by the leader.
func (d Directory) PeopleByLeader() map[string][]string {
	led := map[string][]string{}
	for _, leader := range d.leadersOf(slices.Collect(maps.Keys(d))) {
		led[leader] = d.PeopleOf(leader)
	}
	return led
}

// leadersOf are those who lead any of the users, or lead who does, in order.
func (d Directory) leadersOf(users []string) []string {
	all := map[string]bool{}
	for _, user := range users {
		for leader := d[user].Leader; leader != "" && !all[leader]; leader = d[leader].Leader {
			all[leader] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func parsePerson(content json.RawMessage) (p Person, wrong []error) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return p, []error{errors.New("is not a mapping: write mail, team and leader below it")}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		into, known := map[string]*string{"mail": &p.Mail, "team": &p.Team, "leader": &p.Leader}[name]
		value, isText := fields[name].(string)
		switch {
		case !known:
			wrong = append(wrong, fmt.Errorf("unknown field %q: use mail, team and leader", clip(name)))
		case !isText:
			wrong = append(wrong, fmt.Errorf("field %s is not a text: write it in quotes", name))
		default:
			*into = value
		}
	}
	return p, wrong
}
