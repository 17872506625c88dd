package rest

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The contents of strings do not count, regardless of how the body is split.
func TestMeasured(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", maxDepth+1)
	for body, want := range map[string]string{
		`{"a":"` + deep + `"}`:                             "",
		`{"a":"\"` + deep + `","b":"\\"}`:                  "",
		`{"a":"\\",` + `"b":` + deep:                       "nested",
		`{"a":"\"","b":` + deep:                            "nested",
		strings.Repeat("[]", maxDepth+1):                   "",
		`[` + strings.Repeat(`1,`, maxValues-1) + `1]`:     "",
		`[` + strings.Repeat(`1,`, maxValues) + `1]`:       "values",
		`["` + strings.Repeat(`,`, maxValues) + `"]`:       "",
		`[` + strings.Repeat(`{},`, maxValues/2+1) + `{}]`: "values",
	} {
		for how, in := range map[string]io.Reader{"at once": strings.NewReader(body), "a byte at a time": iotest.OneByteReader(strings.NewReader(body))} {
			m := &limitedJSON{Reader: in}
			_, err := io.ReadAll(m)
			if errors.Is(err, errExcess) != (want != "") || !strings.Contains(m.problem, want) ||
				(m.problem == "") != (want == "") {
				t.Errorf("%.30s… %s: %v %q, want %q", body, how, err, m.problem, want)
			}
		}
	}
}

// A body over the limit is rejected before its end.
func TestMeasured_RejectsEarly(t *testing.T) {
	t.Parallel()
	m := &limitedJSON{
		Reader: io.MultiReader(
			strings.NewReader(strings.Repeat("[", maxDepth+1)),
			iotest.ErrReader(errors.New("more was read")),
		),
	}
	if _, err := io.ReadAll(m); !errors.Is(err, errExcess) {
		t.Error(err)
	}
}
