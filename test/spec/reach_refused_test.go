package spec_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// refused asks for everything with what does not do for it: in vain, whatever is named. The answer is the same to the
// byte: by what he may not call, nobody learns what there is.
func (r *reach) refused(t *testing.T) {
	was := r.s.Rows(t)
	for n, who := range slices.Sorted(maps.Keys(r.credentials)) {
		c := r.credentials[who]
		t.Run(who, func(t *testing.T) {
			for m, o := range r.operations {
				if !c.may(o.accepts) {
					r.refusal(t, c, o, n+m)
				}
			}
		})
	}
	for _, workspace := range []string{r.s.WorkspaceID, r.other.WorkspaceID} {
		if diff := cmp.Diff(rowsOf(was, workspace), rowsOf(r.s.Rows(t), workspace)); diff != "" {
			t.Errorf("what was refused has changed workspace %s:\n%s", workspace, diff)
		}
	}
}

// refusal asks for one operation. A credential that is good has all parameters and methods tried, since only its kind
// keeps it out. Of those that are not good there are many, and each has a turn: another parameter than the one before.
func (r *reach) refusal(t *testing.T, c credential, o reachOperation, n int) {
	t.Helper()
	named, turns := o.parameters, max(len(o.parameters), len(o.methods))
	if len(named) == 0 {
		named = []parameter{{}}
	}
	if c.kinds == nil {
		turns = 1
	} else {
		n = 0
	}
	first := ""
	for i := n; i < n+turns; i++ {
		p, method := named[i%len(named)], o.turn(i)
		for _, whose := range r.whose(c) {
			body := r.body(t, o, p, whose.things, whose.things)
			switch {
			case p.in == "":
			case whose.name == "malformed":
				shapes := p.misshapen(t, nil)
				body[p.in] = shapes[i%len(shapes)].value
			default:
				body[p.in] = p.shape(whose.one(namedIn(o.path, p.name)))
			}
			answer, out := r.answer(t, c, method, o.path, body)
			got, want := fmt.Sprint(answer.StatusCode, " ", headersOf(answer), out), first
			if first == "" { // it is asked with one's own, and the others are as this is
				first, want = got, c.refusedWith(o.accepts)
				got = fmt.Sprint(answer.StatusCode, " ", kindIn(out))
			}
			if got != want {
				t.Fatalf("%s %s %v, which is %s:\n got %s\nwant %s", method, o.path, body, whose.name, got, want) // before more is done by who may not
			}
		}
	}
}

// called are things by what they are to who asks.
type called struct {
	name   string
	things things
}

// one is the thing of a kind, or nobody's where there are none.
func (c called) one(kind string) any {
	if one := c.things[kind]; one != nil {
		return one
	}
	return uuid.NewString()
}

// whose are the things that a credential can name.
func (r *reach) whose(c credential) []called {
	all := []called{{"own", r.mine(c)}, {"foreign", r.foreign}, {"absent", r.absent}, {"malformed", r.misshapen}}
	if c.limited {
		all = append(all, called{"beside", r.beside})
	}
	return all
}

// headersOf are those of an answer that are not of the moment.
func headersOf(answer *http.Response) http.Header {
	kept := answer.Header.Clone()
	kept.Del("Date")
	kept.Del("Seam-Request-Id")
	return kept
}
