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

// Every operation of the contract × every kind of credential × every parameter that names something, which is one's own,
// beside what one reaches, another workspace's, absent, or malformed. The methods that an operation takes have their turns, so that
// each is asked with about every parameter by somebody. The table is made from the contract: an operation
// or a parameter that it does not know fails it, and the message says what to add to reach_things_test.go.
//
//	own       an operation that takes the credential is carried out
//	beside    (of the workspace, and out of a client session's reach) and
//	foreign   (another workspace's) are answered as absent is, but for the identifier itself
//	malformed 400, and the parameter is named; what the contract lets through, however odd, as absent, or 400
//
// An operation that does not take the credential says so, by the credential alone: to the byte the same whatever is named. Nothing that is foreign or beside is
// told by any answer, and whatever was asked, the other workspace is as it was, row by row.
func TestReachOfEveryCredentialInEveryOperation(t *testing.T) {
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

// reach is the table, and what its requests name.
type reach struct {
	s                    *apptest.Server
	other                *apptest.Server // the same server, as another workspace knows it
	own, beside, foreign things
	absent, misshapen    things // of nobody
	spare                *spareThings
	credentials          map[string]credential
	operations           []reachOperation
	untold               map[string]bool // of the other workspace
	unreached            map[string]bool // of what is beside
	before               map[string]map[string]any
}

// reachOperation is an operation as the contract has it.
type reachOperation struct {
	path, method string
	methods      []string
	accepts      []string // kinds of credentials; none: it needs none
	required     []string
	parameters   []parameter
}

// parameter is one that names something, wherever it is in the body.
type parameter struct {
	in    string // the parameter of the operation that it is, or is in
	name  string // singular
	shape func(value any) any
	list  bool

	schema *openapi3.Schema // of what names one thing
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
	r.own, r.beside, r.foreign = newThings(t, s, "mine", "tedee", "jane"), newThings(t, s, "beside", "ttlock", "john"), newThings(t, r.other, "foreign", "yale", "jane")
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
			madeBy(t, s, "/client_sessions/grant_access", "", params{"client_session_id": c.own["client_session_id"], "connected_account_ids": reached})
		}
	}
	rows := s.Rows(t)
	r.untold, r.unreached = map[string]bool{fmt.Sprint(r.foreign["token"]): true}, map[string]bool{}
	for _, id := range belonging(rows, r.other.WorkspaceID) {
		r.untold[id] = true
	}
	for _, name := range []string{"connected_account_id", "unmanaged_account_id", "acs_account_id", "user_identity_id", "client_session_id", "connect_webview_id"} {
		for _, id := range belonging(rows, fmt.Sprint(r.beside[name])) {
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
		o.parameters = append(o.parameters, parametersIn(t, path, name, name, schema.Properties[name].Value, func(v any) any { return v })...)
	}
	return o
}

// parametersIn are the parameters in one of an operation that name something.
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
	named := item.Format == "uuid" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids") || known && (operations == nil || slices.Contains(operations, path))
	inner := item.Type.Includes("object") && len(item.Properties) > 0
	if _, harmless := plain[name]; !named && !harmless && (!inner || !list) {
		t.Errorf("%s: what is the parameter %s? If it names something, add it to names in reach_things_test.go, and one of each to newThings; if not, add it to plain", path, name)
	}
	if named {
		return []parameter{{in: in, name: singular(name), shape: shape, list: list, schema: item}}
	}
	for _, inside := range slices.Sorted(maps.Keys(item.Properties)) {
		out = append(out, parametersIn(t, path, in, inside, item.Properties[inside].Value, func(v any) any { return shape(params{inside: v}) })...)
	}
	return out
}

func singular(name string) string {
	if one, is := strings.CutSuffix(name, "_ids"); is {
		return one + "_id"
	}
	return name
}

// good are the credentials that are, numbered in the order of their names.
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

// strangers name what they do not reach, what nobody has, and nothing at all.
func (r *reach) strangers(t *testing.T) {
	was := rowsOf(r.s.Rows(t), fmt.Sprint(r.beside["connected_account_id"]))
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
	if diff := cmp.Diff(was, rowsOf(r.s.Rows(t), fmt.Sprint(r.beside["connected_account_id"]))); diff != "" {
		t.Errorf("those who do not reach an account have changed it:\n%s", diff)
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
		t.Errorf("%s: which %s has another workspace? Add one to newThings in reach_things_test.go, or to nowhere if there are none here", o.path, kind)
		return
	}
	absent := func() any { return absentLike(kind, r.foreign[kind]) }
	for where, from := range map[string]things{"foreign": r.foreign, "beside": r.beside} {
		if where == "beside" && !c.limited {
			continue
		}
		value := from[kind]
		if where == "foreign" && slices.Contains(makesNamed, o.path) {
			value = r.spare.name(t, kind, value)
		}
		want := tell(absent(), from)
		if got := tell(value, from); got != want {
			t.Errorf("%s %s tells a %s %s from an absent one:\n got %s\nwant %s", method, o.path, where, p.name, got, want)
		}
		if !p.list {
			continue
		}
		one, among := own[kind], ""
		for range 10 { // others do something with what is one's own meanwhile
			want = tell([]any{one, absent()}, from)
			if among = tell([]any{one, value}, from); among == want {
				break
			}
		}
		if among != want {
			t.Errorf("%s %s tells a %s %s among its own from an absent one:\n got %s\nwant %s", method, o.path, where, p.name, among, want)
		}
	}
}

// carriedOut has all who may ask for what is theirs.
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
					if want := wantOwn(who, o, p); fmt.Sprint(status) != want && fmt.Sprint(status, " ", kindIn(out)) != want {
						t.Errorf("%s %s %v: %d, want %s: %s", method, o.path, body, status, want, out)
					}
					if who == "API key" && p.in != "" && !slices.Contains(makesNamed, o.path) && alike[o.path+" "+p.name]+alike[o.path] == "" { // or the table would try nothing
						body := r.body(t, o, p, own, r.foreign)
						absent := absentLike(p.name, own[namedIn(o.path, p.name)])
						body[p.in] = p.shape(absent)
						if _, nothing := r.ask(t, c, method, o.path, body); blurred(without(nothing, absent)) == blurred(without(out, own[namedIn(o.path, p.name)])) {
							t.Errorf("%s answers the same whichever %s is named: %s", o.path, p.name, out)
						}
					}
				}
			}
		})
	})
	r.untouched(t, "those who ask for what is theirs")
}

// mine is what the credential may name itself.
func (r *reach) mine(c credential) things {
	own := maps.Clone(r.own)
	maps.Copy(own, c.own)
	return own
}

// unused is that, without what strangers might change.
func (r *reach) unused(c credential, o reachOperation) things {
	own := r.mine(c)
	maps.Copy(own, r.spare.used[o.path])
	return own
}

// body is a request that lacks but the parameter: what is required, or has to come with that, is one's own or, where
// that says so, from where the parameter's is.
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
			t.Errorf("%s requires %s: add a value to plain in reach_things_test.go", o.path, name)
		}
	}
	return body
}

// untouched compares the other workspace with what it was, row by row.
func (r *reach) untouched(t *testing.T, by string) {
	t.Helper()
	if diff := cmp.Diff(r.before, rowsOf(r.s.Rows(t), r.other.WorkspaceID)); diff != "" {
		t.Errorf("another workspace was changed by %s:\n%s", by, diff)
	}
}
