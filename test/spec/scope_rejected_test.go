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

// refused sends every request with credentials that the operation does not accept. The response is identical to the
// byte whatever the request names, so that it reveals nothing.
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
			t.Errorf("a rejected request has changed workspace %s:\n%s", workspace, diff)
		}
	}
}

// refusal tests one operation. A valid credential of the wrong kind is tested with all parameters and methods. The many
// invalid credentials take turns with the parameters.
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
			if first == "" { // the first request names an own thing; the others must get the same response
				first, want = got, c.refusedWith(o.accepts)
				got = fmt.Sprint(answer.StatusCode, " ", kindIn(out))
			}
			if got != want {
				t.Fatalf(
					"%s %s %v, which is %s:\n got %s\nwant %s",
					method,
					o.path,
					body,
					whose.name,
					got,
					want,
				) // before an unauthorized client does more
			}
		}
	}
}

// called are things, by their relation to the client.
type called struct {
	name   string
	things things
}

// one returns the thing of a kind, or an absent one.
func (c called) one(kind string) any {
	if one := c.things[kind]; one != nil {
		return one
	}
	return uuid.NewString()
}

// whose returns the things that a credential can name.
func (r *reach) whose(c credential) []called {
	all := []called{{"own", r.mine(c)}, {"foreign", r.foreign}, {"absent", r.absent}, {"malformed", r.misshapen}}
	if c.limited {
		all = append(all, called{"unrelated", r.unrelated})
	}
	return all
}

// headersOf returns the headers of a response that do not vary.
func headersOf(answer *http.Response) http.Header {
	kept := answer.Header.Clone()
	kept.Del("Date")
	kept.Del("Seam-Request-Id")
	return kept
}
