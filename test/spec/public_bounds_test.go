package spec_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// visitors are callers with a publishable key, which is public.
type visitors struct {
	*testing.T
	s   *apptest.Server
	key string
}

func newVisitors(t *testing.T, s *apptest.Server) *visitors {
	t.Helper()
	key, _ := s.Credential(
		t,
		auth.NewCredential{Kind: domain.PublishableKey, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	)
	return &visitors{T: t, s: s, key: key}
}

// session returns the session of a visitor. idempotencyKey may be empty.
func (v *visitors) session(visitor, idempotencyKey string) api.ClientSession {
	v.Helper()
	header := http.Header{"Seam-Publishable-Key": {v.key}}
	if idempotencyKey != "" {
		header.Set("Idempotency-Key", idempotencyKey)
	}
	var out api.ClientSessionResponse
	res := v.s.Send(
		v,
		http.MethodPost,
		"/client_sessions/get_or_create",
		header,
		fmt.Sprintf(`{"user_identifier_key":%q}`, visitor),
		&out,
	)
	if res.StatusCode != http.StatusOK {
		v.Fatalf("get_or_create: %s", res.Status)
	}
	return out.ClientSession
}

func (v *visitors) webview(token string, in params) (id string, status int, f failure) {
	v.Helper()
	var out struct {
		failure
		Webview api.ConnectWebview `json:"connect_webview"`
	}
	res := v.s.Send(
		v,
		http.MethodPost,
		"/connect_webviews/create",
		http.Header{"Authorization": {"Bearer " + token}, "Idempotency-Key": {uuid.NewString()}},
		string(domain.MustJSON(in)),
		&out,
	)
	return out.Webview.ConnectWebviewID, res.StatusCode, out.failure
}

func (v *visitors) count(query string) (n int) {
	v.Helper()
	conn, err := pgx.Connect(v.Context(), v.s.DatabaseURL())
	if err != nil {
		v.Fatal(err)
	}
	defer conn.Close(v.Context())
	if err := conn.QueryRow(v.Context(), "select count(*) from "+query).Scan(&n); err != nil {
		v.Fatal(err)
	}
	return n
}

// What anyone with a publishable key can store is bounded in rows and bytes.
func TestPublicCallers_AreBounded(t *testing.T) {
	t.Parallel()
	const webviews, keys, entries, visits = 30, 10, 4, 60
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithAccess(func(o *access.Options) {
		o.UnclaimedWebviews, o.PublicKeys, o.PublicEntries = webviews, keys, entries
	}))
	v := newVisitors(t, s)
	person := v.session("visitor", "")
	ofWorkspace, status, _ := v.webview(s.APIKey, params{})
	if status != http.StatusOK {
		t.Fatalf("create a webview with the API key: %d", status)
	}
	granted := params{"client_session_id": person.ClientSessionID, "connect_webview_ids": []string{ofWorkspace}}
	if status := s.Post(t, "/client_sessions/grant_access", granted, nil); status != http.StatusOK {
		t.Fatalf("grant access: %d", status)
	}
	ids := make([]string, 0, visits)
	for range visits {
		id, status, f := v.webview(person.Token, params{"custom_metadata": params{"a": strings.Repeat("a", 400)}})
		if status != http.StatusOK {
			t.Fatalf("create a webview: %d %+v", status, f)
		}
		ids = append(ids, id)
		v.session("visitor", uuid.NewString())
	}
	if n := v.count("connect_webviews where created_by_session is not null"); n != auth.MaxSessionWebviews {
		t.Errorf("a session has %d open webviews, want %d", n, auth.MaxSessionWebviews)
	}
	newest := ids[visits-auth.MaxSessionWebviews:]
	slices.Sort(newest)
	if got := v.session("visitor", "").ConnectWebviewIds; !slices.Equal(got, newest) {
		t.Errorf("the session shows %d webviews, want the newest %d", len(got), len(newest))
	}
	if n := v.count("connect_webviews where created_by_session is null"); n != 1 {
		t.Error("a webview of the workspace has made room for those of a session")
	}
	var f failure
	for n := 0; status == http.StatusOK; n++ {
		_, status, f = v.webview(v.session(fmt.Sprint("visitor ", n/5), "").Token, params{})
		if n > 2*webviews {
			t.Fatalf("%d webviews of sessions that reach nothing", v.count("connect_webviews where is_unclaimed"))
		}
	}
	if status != http.StatusTooManyRequests || !strings.Contains(f.Error.Message, "/connect_webviews/delete") {
		t.Errorf("at the limit of the workspace: %d %+v", status, f)
	}
	if n := v.count("connect_webviews where is_unclaimed"); n != webviews {
		t.Errorf("%d webviews of sessions that reach nothing, want %d", n, webviews)
	}
	if n := v.count("idempotency_keys where is_public"); n == 0 || n > keys+1 {
		t.Errorf("%d stored answers of public callers, want at most %d", n, keys+1)
	}
	if n := v.count("audit_log where actor_kind in ('publishable_key', 'client_session')"); n != entries {
		t.Errorf("%d audit entries of public callers, want %d", n, entries)
	}
	s.Exec(t, "update connect_webviews set created_at = created_at - interval '1 hour'")
	apptest.Until(t, "webviews unused for an hour make room", func() bool {
		_, status, _ := v.webview(v.session("late visitor", "").Token, params{})
		return status == http.StatusOK
	})
}

// The metadata of end users is short, and that of the workspace is not affected.
func TestPublicCallers_StoreLittleMetadata(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	v := newVisitors(t, s)
	person := v.session("visitor", "")
	wide := params{}
	for n := range 49 {
		wide[fmt.Sprint("key ", n)] = strings.Repeat("a", 490)
	}
	for name, c := range map[string]struct {
		token string
		data  params
		want  int
	}{
		"many keys":             {person.Token, wide, http.StatusBadRequest},
		"one byte too much":     {person.Token, params{"a": strings.Repeat("a", 486), "b": true}, http.StatusBadRequest},
		"as much as allowed":    {person.Token, params{"a": strings.Repeat("a", 483), "b": true}, http.StatusOK},
		"many bytes per letter": {person.Token, params{"a": strings.Repeat("🔑", 130)}, http.StatusBadRequest},
		"an API key":            {s.APIKey, wide, http.StatusOK},
	} {
		_, status, f := v.webview(c.token, params{"custom_metadata": c.data})
		says := strings.Contains(f.Error.Message, "a client session may store 500")
		if status != c.want || says != (status == http.StatusBadRequest) {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
}

// A session may repeat a login to an account without end. The oldest webviews go, and all sessions keep the account.
func TestPublicCallers_RepeatLogins(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	v := newVisitors(t, s)
	visitor, other := v.session("visitor", ""), v.session("another visitor", "")
	logIn := func(token string) (webview string) {
		t.Helper()
		w := page(t, s, token, params{})
		if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status >= 400 {
			t.Fatalf("log in: %d", status)
		}
		return w.ConnectWebviewID
	}
	first := logIn(other.Token)
	var newest string
	for range account.MaxAccountWebviews + 5 {
		newest = logIn(visitor.Token)
	}
	if n := v.count("connect_webviews"); n != account.MaxAccountWebviews {
		t.Errorf("%d webviews with a login to one account, want %d", n, account.MaxAccountWebviews)
	}
	for webview, want := range map[string]int{first: http.StatusNotFound, newest: http.StatusOK} {
		in := params{"connect_webview_id": webview}
		if status := s.Post(t, "/connect_webviews/get", in, nil); status != want {
			t.Errorf("get a webview: %d, want %d", status, want)
		}
	}
	for _, name := range []string{"visitor", "another visitor"} {
		if got := v.session(name, "").ConnectedAccountIds; len(got) != 1 {
			t.Errorf("the session of %s sees the accounts %v, want one", name, got)
		}
	}
}

// Sessions store little on devices, and may shorten what an API key stored.
func TestPublicCallers_StoreLittleOnDevices(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "august")
	person := session(t, s, params{"connected_account_ids": []string{account}})
	wide := params{}
	for n := range 49 {
		wide[fmt.Sprint("key ", n)] = strings.Repeat("a", 490)
	}
	for _, c := range []struct {
		name, token string
		data        params
		want        int
	}{
		{"many keys", person.Token, wide, http.StatusBadRequest},
		{"as much as allowed", person.Token, params{"a": strings.Repeat("a", 490)}, http.StatusOK},
		{"one key more", person.Token, params{"b": true}, http.StatusBadRequest},
		{"an API key", s.APIKey, wide, http.StatusOK},
		{"another value of the same length", person.Token, params{"key 0": strings.Repeat("b", 490)}, http.StatusOK},
		{"a longer value", person.Token, params{"key 0": strings.Repeat("b", 491)}, http.StatusBadRequest},
		{"fewer keys", person.Token, params{"key 0": nil}, http.StatusOK},
	} {
		var f failure
		status := s.PostAs(t, c.token, "/devices/update", params{"device_id": device, "custom_metadata": c.data}, &f)
		says := strings.Contains(f.Error.Message, "a client session may store 500")
		if status != c.want || says != (status == http.StatusBadRequest) {
			t.Errorf("%s: %d %+v", c.name, status, f.Error)
		}
	}
}
