package main

import (
	"reflect"
	"testing"
)

func TestWaysOfAPage(t *testing.T) {
	const page = `
| attacker | what holds |
|---|---|
| a reader | nothing (` + "`TestNot`" + `) |

| tries to | is stopped by | tests |
|---|---|---|
| read | a webhook | [a](../test/integration/a_test.go), ` + "`TestB`" + ` |
| write | nothing | ` + "`FuzzC`, `TestB`" + ` |
`
	want := []way{
		{tries: "read", tests: []string{"TestB"}, scenarios: []string{"test/integration/a_test.go"}},
		{tries: "write", tests: []string{"FuzzC", "TestB"}},
	}
	if got := waysOf(page); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if got := all(want, func(w way) []string { return w.tests }); !reflect.DeepEqual(got, []string{"FuzzC", "TestB"}) {
		t.Errorf("%v", got)
	}
}
