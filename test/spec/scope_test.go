package spec_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// The table has every operation of the contract, with every kind of credential and every parameter that names
// something. The parameter names an own thing, an unrelated or a foreign one, an absent one, or is malformed. The
// methods of an operation take turns, so that each is used with about every parameter. The test builds the table from
// the contract. An operation or a parameter that it does not know fails the test; the message says what to add to
// scope_things_test.go.
//
//	own       an operation that accepts the credential succeeds
//	unrelated (in the workspace, but out of a client session's scope) and
//	foreign   (another workspace's) are answered like absent ones, except for the id itself
//	malformed 400, naming the parameter; unusual values that the contract allows: like absent ones, or 400
//
// An operation that does not accept the credential gives the same response to the byte, whatever the request names. No
// response reveals anything foreign or unrelated. The rows of the other workspace never change.
func TestScope_EveryCredentialEveryOperation(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	r := newReach(t, s)
	t.Run("refused", r.refused)
	t.Run("strangers", r.strangers)
	t.Run("own", r.carriedOut)
	if status := s.Post(t, "/workspaces/reset_sandbox", params{}, nil); status != http.StatusOK {
		t.Errorf("reset the workspace: %d", status)
	}
	r.untouched(t, "the reset of its neighbour")
}

// reach is the table and the things that its requests name.
type reach struct {
	s                       *apptest.Server
	other                   *apptest.Server // the server as seen by another workspace
	own, unrelated, foreign things
	absent, misshapen       things // things that do not exist or are invalid
	spare                   *spareThings
	credentials             map[string]credential
	operations              []reachOperation
	untold                  map[string]bool // ids of the other workspace
	unreached               map[string]bool // ids outside the scope of client sessions
	before                  map[string]map[string]any
}

// reachOperation is an operation of the contract.
type reachOperation struct {
	path, method string
	methods      []string
	accepts      []string // kinds of credentials; none if it needs no credential
	required     []string
	parameters   []parameter
}

// parameter is a parameter that names something, anywhere in the body.
type parameter struct {
	in    string // the top-level parameter
	name  string // singular
	shape func(value any) any
	list  bool

	schema *openapi3.Schema // of a single value
}

func newReach(t *testing.T, s *apptest.Server) *reach {
	t.Helper()
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	r := &reach{s: s, other: s.Workspace(t, "Other")}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		r.operations = append(r.operations, operationOf(t, doc, path))
	}
	if t.Failed() {
		t.FailNow()
	}
	r.own, r.unrelated, r.foreign = newThings(
		t,
		s,
		"mine",
		"tedee",
		"jane",
	), newThings(
		t,
		s,
		"unrelated",
		"ttlock",
		"john",
	), newThings(
		t,
		r.other,
		"foreign",
		"yale",
		"jane",
	)
	r.spare = newSpares(t, s, r.other, r.own, r.foreign)
	r.absent, r.misshapen = things{}, things{}
	for kind, value := range r.foreign {
		r.absent[kind], r.misshapen[kind] = absentLike(kind, value), "\x01 nothing like it"
	}
	r.credentials = newCredentials(t, s, r.own, r.other.WorkspaceID)
	reached := []any{}
	for _, id := range r.spare.accounts {
		reached = append(reached, id)
	}
	for _, c := range r.credentials {
		if c.limited {
			madeBy(
				t,
				s,
				"/client_sessions/grant_access",
				"",
				params{"client_session_id": c.own["client_session_id"], "connected_account_ids": reached},
			)
		}
	}
	rows := s.Rows(t)
	r.untold, r.unreached = map[string]bool{fmt.Sprint(r.foreign["token"]): true}, map[string]bool{}
	for _, id := range belonging(rows, r.other.WorkspaceID) {
		r.untold[id] = true
	}
	for _, name := range []string{
		"connected_account_id",
		"unmanaged_account_id",
		"acs_account_id",
		"user_identity_id",
		"client_session_id",
		"connect_webview_id",
	} {
		for _, id := range belonging(rows, fmt.Sprint(r.unrelated[name])) {
			r.unreached[id] = true
		}
	}
	r.before = rowsOf(rows, r.other.WorkspaceID)
	if len(r.before) < 60 {
		t.Fatalf("the other workspace has %d rows", len(r.before))
	}
	return r
}

func operationOf(t *testing.T, doc *openapi3.T, path string) (o reachOperation) {
	t.Helper()
	item := doc.Paths.Value(path)
	o = reachOperation{path: path, method: http.MethodPost, methods: slices.Sorted(maps.Keys(item.Operations()))}
	security := doc.Security
	if item.Post.Security != nil {
		security = *item.Post.Security
	}
	for _, alternative := range security {
		for kind := range alternative {
			if kind != "seam_workspace" {
				o.accepts = append(o.accepts, kind)
			}
		}
	}
	schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
	o.required = schema.Required
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		o.parameters = append(
			o.parameters,
			parametersIn(t, path, name, name, schema.Properties[name].Value, func(v any) any { return v })...)
	}
	return o
}

// parametersIn returns the parameters in one of an operation that name something.
func parametersIn(t *testing.T, path, in, name string, schema *openapi3.Schema, shape func(any) any) (out []parameter) {
	t.Helper()
	item, list := schema, schema.Type.Includes("array")
	if list {
		item = schema.Items.Value
		within := shape
		shape = func(v any) any {
			if many, is := v.([]any); is {
				return within(many)
			}
			return within([]any{v})
		}
	}
	operations, known := names[name]
	_, harmless := plain[name]
	identifier := item.Format == "uuid" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids")
	named := identifier && !harmless || known && (operations == nil || slices.Contains(operations, path))
	inner := item.Type.Includes("object") && len(item.Properties) > 0
	if !named && !harmless && (!inner || !list) {
		t.Errorf(
			"%s: unknown parameter %s: if it names something, add it to names in scope_things_test.go and a thing to "+
				"newThings; else add it to plain",
			path,
			name,
		)
	}
	if named {
		return []parameter{{
			in:     in,
			name:   singular(name),
			shape:  shape,
			list:   list,
			schema: item,
		}}
	}
	for _, inside := range slices.Sorted(maps.Keys(item.Properties)) {
		out = append(
			out,
			parametersIn(
				t,
				path,
				in,
				inside,
				item.Properties[inside].Value,
				func(v any) any { return shape(params{inside: v}) },
			)...)
	}
	return out
}

func singular(name string) string {
	if one, is := strings.CutSuffix(name, "_ids"); is {
		return one + "_id"
	}
	return name
}

// good runs a test for each valid credential, sorted by name.
func (r *reach) good(t *testing.T, try func(t *testing.T, n int, who string, c credential)) {
	for n, who := range slices.Sorted(maps.Keys(r.credentials)) {
		if c := r.credentials[who]; c.kinds != nil {
			t.Run(who, func(t *testing.T) {
				t.Parallel()
				try(t, n, who, c)
			})
		}
	}
}

// strangers name things out of scope, absent things, and no things.
func (r *reach) strangers(t *testing.T) {
	was := rowsOf(r.s.Rows(t), fmt.Sprint(r.unrelated["connected_account_id"]))
	t.Run("ask", func(t *testing.T) {
		r.good(t, func(t *testing.T, n int, who string, c credential) {
			for _, o := range r.operations {
				for i, p := range o.parameters {
					if c.may(o.accepts) {
						r.malformed(t, who, o, o.turn(n+i), p)
						r.stranger(t, c, o, o.turn(n+i), p)
					}
				}
			}
		})
	})
	r.untouched(t, "strangers")
	if diff := cmp.Diff(was, rowsOf(r.s.Rows(t), fmt.Sprint(r.unrelated["connected_account_id"]))); diff != "" {
		t.Errorf("clients without access to an account have changed it:\n%s", diff)
	}
}

func (r *reach) stranger(t *testing.T, c credential, o reachOperation, method string, p parameter) {
	t.Helper()
	kind := namedIn(o.path, p.name)
	own := r.unused(c, o)
	tell := func(value any, from things) string {
		body := r.body(t, o, p, own, from)
		body[p.in] = p.shape(value)
		status, out := r.told(t, c, method, o.path, body)
		return fmt.Sprint(status, " ", blurred(without(out, value)))
	}
	if !p.shared() {
		return
	}
	if r.foreign[kind] == nil {
		t.Errorf(
			"%s: which %s has another workspace? Add one to newThings in scope_things_test.go, or to nowhere if there are "+
				"none here",
			o.path,
			kind,
		)
		return
	}
	absent := func() any { return absentLike(kind, r.foreign[kind]) }
	for where, from := range map[string]things{"foreign": r.foreign, "unrelated": r.unrelated} {
		if where == "unrelated" && !c.limited {
			continue
		}
		value := from[kind]
		if where == "foreign" && slices.Contains(makesNamed, o.path) {
			value = r.spare.name(t, kind, value)
		}
		want := tell(absent(), from)
		if got := tell(value, from); got != want {
			t.Errorf(
				"%s %s distinguishes a %s %s from an absent one:\n got %s\nwant %s",
				method,
				o.path,
				where,
				p.name,
				got,
				want,
			)
		}
		if !p.list {
			continue
		}
		one, among := own[kind], ""
		for range 10 { // other tests use the same thing concurrently
			want = tell([]any{one, absent()}, from)
			if among = tell([]any{one, value}, from); among == want {
				break
			}
		}
		if among != want {
			t.Errorf(
				"%s %s distinguishes a %s %s among own ones from an absent one:\n got %s\nwant %s",
				method,
				o.path,
				where,
				p.name,
				among,
				want,
			)
		}
	}
}

// carriedOut sends all allowed requests with own things.
func (r *reach) carriedOut(t *testing.T) {
	t.Run("ask", func(t *testing.T) {
		r.good(t, func(t *testing.T, n int, who string, c credential) {
			for _, o := range r.operations {
				if !c.may(o.accepts) || o.path == "/workspaces/reset_sandbox" {
					continue
				}
				named := slices.DeleteFunc(slices.Clone(o.parameters), func(p parameter) bool { return !p.shared() })
				if len(named) == 0 {
					named = []parameter{{}}
				}
				for i, p := range named {
					method, own := o.turn(n+i), r.mine(c)
					if create := r.spare.fresh[o.path]; create != nil {
						maps.Copy(own, create(t))
					}
					body := r.body(t, o, p, own, own)
					if p.in != "" {
						body[p.in] = p.shape(own[namedIn(o.path, p.name)])
					}
					status, out := r.toldInTheEnd(t, c, method, o.path, body)
					if want := wantOwn(
						who,
						o,
						p,
					); fmt.Sprint(status) != want &&
						fmt.Sprint(status, " ", kindIn(out)) != want {
						t.Errorf("%s %s %v: %d, want %s: %s", method, o.path, body, status, want, out)
					}
					if who == "API key" && p.in != "" && !slices.Contains(makesNamed, o.path) &&
						alike[o.path+" "+p.name]+alike[o.path] == "" { // or the table would test nothing
						body := r.body(t, o, p, own, r.foreign)
						absent := absentLike(p.name, own[namedIn(o.path, p.name)])
						body[p.in] = p.shape(absent)
						if _, nothing := r.ask(
							t,
							c,
							method,
							o.path,
							body,
						); blurred(
							without(nothing, absent),
						) == blurred(
							without(out, own[namedIn(o.path, p.name)]),
						) {
							t.Errorf("%s gives the same response for every %s: %s", o.path, p.name, out)
						}
					}
				}
			}
		})
	})
	r.untouched(t, "allowed requests")
}

// mine returns the things that the credential may name.
func (r *reach) mine(c credential) things {
	own := maps.Clone(r.own)
	maps.Copy(own, c.own)
	return own
}

// unused is mine without what others might change.
func (r *reach) unused(c credential, o reachOperation) things {
	own := r.mine(c)
	maps.Copy(own, r.spare.used[o.path])
	return own
}

// body returns a request that lacks only the parameter. Required parameters, and those that must accompany it, are own
// things, or as with says.
func (r *reach) body(t *testing.T, o reachOperation, p parameter, own, from things) params {
	t.Helper()
	body := params{}
	for _, name := range slices.Concat(o.required, strings.Fields(with[o.path]), strings.Fields(with[o.path+" "+p.name])) {
		name, of, same := strings.Cut(name, "/")
		i := slices.IndexFunc(o.parameters, func(q parameter) bool { return q.in == name })
		switch {
		case name == p.in:
		case same:
			body[name] = from[of]
		case i >= 0:
			body[name] = o.parameters[i].shape(own[namedIn(o.path, o.parameters[i].name)])
		case plain[name] != nil:
			body[name] = plain[name]()
		default:
			t.Errorf("%s requires %s: add a value to plain in scope_things_test.go", o.path, name)
		}
	}
	return body
}

// untouched compares the other workspace with its earlier state, row by row.
func (r *reach) untouched(t *testing.T, by string) {
	t.Helper()
	if diff := cmp.Diff(r.before, rowsOf(r.s.Rows(t), r.other.WorkspaceID)); diff != "" {
		t.Errorf("another workspace was changed by %s:\n%s", by, diff)
	}
}
