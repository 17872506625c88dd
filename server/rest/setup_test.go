package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const (
	goodKey     = "seam_good_key" // acts in workspaceA
	otherKey    = "seam_other_key"
	roamerKey   = "seam_at_roamer" // acts in the workspace that the request names
	consoleKey  = "ey_console"     // as roamerKey
	sessionKey  = "seam_cst1_someone"
	publicKey   = "seam_pk1_everybody"
	customerKey = "seam_cst1_customer"
	someID      = "0191b7a4-5f2e-7c3d-8a4b-1f2e3d4c5b6a"
)

var (
	workspaceA = uuid.MustParse("aaaaaaaa-0000-7000-8000-000000000000")
	workspaceB = uuid.MustParse("bbbbbbbb-0000-7000-8000-000000000000")
	longAgo    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// rolePrefix begins a key of workspaceA, and its role follows.
const rolePrefix = "seam_role_"

func knownKeys(_ context.Context, token, workspaceID string) (domain.Principal, error) {
	if role, is := strings.CutPrefix(token, rolePrefix); is {
		return domain.Principal{WorkspaceID: workspaceA, Kind: domain.APIKey, Role: domain.Role(role)}, nil
	}
	switch token {
	case goodKey:
		return domain.Principal{WorkspaceID: workspaceA, Kind: domain.APIKey, Role: domain.RoleAdmin}, nil
	case otherKey:
		return domain.Principal{WorkspaceID: workspaceB, Kind: domain.APIKey, Role: domain.RoleAdmin}, nil
	case roamerKey, consoleKey:
		id, _ := uuid.Parse(workspaceID)
		return domain.Principal{
			WorkspaceID: id,
			Role:        domain.RoleAdmin,
			Kind:        map[string]domain.CredentialKind{roamerKey: domain.PAT, consoleKey: domain.ConsoleSession}[token],
		}, nil
	case publicKey:
		return domain.Principal{WorkspaceID: workspaceA, Kind: domain.PublishableKey}, nil
	case sessionKey, customerKey:
		return domain.Principal{
			WorkspaceID: workspaceA,
			Kind:        domain.EndUser,
			Scope:       []uuid.UUID{},
			Customer:    map[string]string{customerKey: "customer"}[token],
		}, nil
	}
	return domain.Principal{}, &domain.Error{
		Kind:    domain.Unauthorized,
		Type:    "unauthorized",
		Message: "API Key not found",
	}
}

// answers are handlers that show what has reached them: the edge is tested without anything behind it.
type answers struct {
	openapi.StrictServerInterface
	pager pager
	rows  int // how many devices there are

	limits ratelimit.Limits
	around []openapi.StrictMiddlewareFunc
}

// echo answers with the request as the handler has got it.
type echo struct{ request any }

func (e echo) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{"ok": true, "request": e.request})
}

func (e echo) VisitCreateWebhookResponse(w http.ResponseWriter) error    { return e.write(w) }
func (e echo) VisitCreateAccessCodeResponse(w http.ResponseWriter) error { return e.write(w) }
func (e echo) VisitDeleteWebhookResponse(w http.ResponseWriter) error    { return e.write(w) }
func (e echo) VisitUpdateWebhookResponse(w http.ResponseWriter) error    { return e.write(w) }
func (e echo) VisitListEventsResponse(w http.ResponseWriter) error       { return e.write(w) }
func (e echo) VisitGetHealthResponse(w http.ResponseWriter) error        { return e.write(w) }
func (e echo) VisitListWorkspacesResponse(w http.ResponseWriter) error   { return e.write(w) }
func (e echo) VisitCreateWorkspaceResponse(w http.ResponseWriter) error  { return e.write(w) }
func (e echo) VisitListDeviceProvidersResponse(w http.ResponseWriter) error {
	return e.write(w)
}

// echoWithPage is echo for a list with pages.
type echoWithPage struct {
	echo
	page api.Pagination
	ids  []string
}

func (e echoWithPage) VisitListDevicesResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).
		Encode(map[string]any{"ok": true, "request": e.request, "pagination": e.page, "ids": e.ids})
}

func (answers) CreateWebhook(
	_ context.Context, r openapi.CreateWebhookRequestObject,
) (openapi.CreateWebhookResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) CreateAccessCode(
	_ context.Context, r openapi.CreateAccessCodeRequestObject,
) (openapi.CreateAccessCodeResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) DeleteWebhook(
	_ context.Context, r openapi.DeleteWebhookRequestObject,
) (openapi.DeleteWebhookResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) UpdateWebhook(
	_ context.Context, r openapi.UpdateWebhookRequestObject,
) (openapi.UpdateWebhookResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) ListEvents(
	_ context.Context, r openapi.ListEventsRequestObject,
) (openapi.ListEventsResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) ListDeviceProviders(
	_ context.Context, r openapi.ListDeviceProvidersRequestObject,
) (openapi.ListDeviceProvidersResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) GetHealth(context.Context, openapi.GetHealthRequestObject) (openapi.GetHealthResponseObject, error) {
	return echo{}, nil
}

func (answers) CreateWorkspace(
	_ context.Context, r openapi.CreateWorkspaceRequestObject,
) (openapi.CreateWorkspaceResponseObject, error) {
	return echo{r.Body}, nil
}

func (answers) ListWorkspaces(
	ctx context.Context, _ openapi.ListWorkspacesRequestObject,
) (openapi.ListWorkspacesResponseObject, error) {
	return echo{principal(ctx)}, nil
}

// truncated is an answer that we cannot go on with.
type torn struct{}

func (torn) VisitGetDeviceResponse(w http.ResponseWriter) error {
	if _, err := w.Write([]byte(`{"ok":true}`)); err != nil {
		return err
	}
	return errors.New("the rest is lost")
}

// GetDevice fails in the way that the name asks for.
func (answers) GetDevice(
	ctx context.Context, r openapi.GetDeviceRequestObject,
) (openapi.GetDeviceResponseObject, error) {
	if r.Body.Name == "torn" {
		return torn{}, nil
	}
	if r.Body.Name == "endless" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err, ok := failures[r.Body.Name]; ok {
		return nil, err
	}
	if r.Body.Name == "abort" {
		panic(http.ErrAbortHandler)
	}
	panic("PIN 4711 is in here")
}

var failures = map[string]error{
	"missing": &domain.Error{
		Kind:    domain.NotFound,
		Type:    "device_not_found",
		Message: "No such device",
		Data:    map[string]any{"device_id": someID},
	},
	"bad field": &domain.Error{
		Kind:    domain.Invalid,
		Type:    "invalid_input",
		Message: "On this device a code has 4 digits",
		Field:   "code",
	},
	"bad request": &domain.Error{
		Kind:    domain.Invalid,
		Type:    "invalid_input",
		Message: "Must specify either device_id or name",
	},
	"bad state": &domain.Error{
		Kind:    domain.Invalid,
		Type:    "device_offline",
		Message: "The device is offline",
		Field:   "device_id",
	},
	"taken": &domain.Error{
		Kind:    domain.Conflict,
		Type:    "duplicate_access_code",
		Message: "Cannot set duplicate access code",
	},
	"forbidden":   &domain.Error{Kind: domain.Forbidden, Type: "forbidden", Message: "Not yours"},
	"unavailable": &domain.Error{Kind: domain.Unavailable, Type: "service_unavailable", Message: "Try again"},
	"too many":    &domain.Error{Kind: domain.TooMany, Type: "too_many_requests", Message: "20 wait"},
	"wrapped": fmt.Errorf(
		"read the device: %w",
		&domain.Error{Kind: domain.NotFound, Type: "device_not_found", Message: "No such device"},
	),
	"no kind":    &domain.Error{Type: "secret_type", Message: "PIN 4711"},
	"unforeseen": errors.New("PIN 4711 is in here"),
	"too slow":   fmt.Errorf("read the device: %w", context.DeadlineExceeded),
	"locked out": fmt.Errorf(
		"read the device: %w",
		&pgconn.PgError{Code: "55P03", Message: "canceling statement due to lock timeout"},
	),
	"restarts":   fmt.Errorf("read the device: %w", &pgconn.PgError{Severity: "FATAL", Code: "57P01"}),
	"disk full":  fmt.Errorf("write the device: %w", &pgconn.PgError{Code: "53100"}),
	"refused":    fmt.Errorf("read the device: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
	"cut off":    fmt.Errorf("read the device: %w", io.ErrUnexpectedEOF),
	"wrong type": fmt.Errorf("read the device: %w", &pgconn.PgError{Code: "42804"}),
	"bad data": &domain.Error{
		Kind:    domain.NotFound,
		Type:    "device_not_found",
		Message: "No such device",
		Data:    map[string]any{"x": func() {}},
	},
}

// ListDevices walks rows whose identifiers count up from one.
func (a answers) ListDevices(
	ctx context.Context, r openapi.ListDevicesRequestObject,
) (openapi.ListDevicesResponseObject, error) {
	page, err := a.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	var last domain.Position
	ids := []string{}
	row := int(page.After.ID[15])
	for ; row < a.rows && len(ids) < page.Limit; row++ {
		last = domain.Position{At: longAgo.Add(time.Duration(row) * time.Microsecond), ID: uuid.UUID{15: byte(row + 1)}}
		ids = append(ids, last.ID.String())
	}
	return echoWithPage{echo{r.Body}, page.pagination(row < a.rows, last), ids}, nil
}

type bundle struct {
	*testing.T
	url     string
	handler http.Handler
	log     *testenv.Buffer
}

func setup(t *testing.T, adjust ...func(*answers)) bundle {
	t.Helper()
	a := answers{pager: pager{keys: cursorKeys(bytes.Repeat([]byte{7}, 32))}, rows: 65}
	for _, f := range adjust {
		f(&a)
	}
	log := &testenv.Buffer{}
	handler, err := newEdge(
		a,
		knownKeys,
		Options{
			Logger:         slog.New(slog.NewTextHandler(log, nil)),
			Limiter:        ratelimit.New(a.limits),
			TrustForwarded: a.pager.trustForwarded,
		},
		a.around...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return bundle{t, server.URL, handler, log}
}

// request is one HTTP request; the credential is good unless header says otherwise.
type request struct {
	method, path, body string
	header             map[string]string
}

type response struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (b bundle) send(t *testing.T, q request) response {
	t.Helper()
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	target := q.path
	if !strings.HasPrefix(target, "http") {
		target = b.url + target
	}
	r, err := http.NewRequestWithContext(t.Context(), q.method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+goodKey)
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
		if value == absent {
			r.Header.Del(name)
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := response{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if uuid.Validate(res.Header.Get("seam-request-id")) != nil {
		t.Errorf("seam-request-id = %q, want a UUID", res.Header.Get("seam-request-id"))
	}
	if cache := res.Header.Get("Cache-Control"); cache == "" || q.path != "/openapi.json" && cache != "no-store" {
		t.Errorf("Cache-Control = %q", cache)
	}
	if len(raw) > 0 {
		if got := res.Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
			t.Errorf("Content-Type = %q", got)
		}
		if err := json.Unmarshal(raw, &out.body); err != nil {
			t.Errorf("the body %q is not JSON: %v", raw, err)
		}
	}
	return out
}

const absent = "(absent)"

// echoed is the request as the handler has got it, in the order of the names.
func (r response) echoed() string {
	out, _ := json.Marshal(r.body["request"])
	return string(out)
}

func query(pairs ...string) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, url.QueryEscape(pairs[i])+"="+url.QueryEscape(pairs[i+1]))
	}
	return strings.Join(parts, "&")
}

var discard = slog.New(slog.DiscardHandler)

// serve answers a request without a network, and checks that the answer has the shape of the contract.
func serve(t *testing.T, handler http.Handler, r *http.Request) response {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	res := response{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if uuid.Validate(w.Header().Get("seam-request-id")) != nil {
		t.Error("there is no seam-request-id")
	}
	if res.status >= 500 {
		t.Errorf("status %d: %s", res.status, res.raw)
	}
	if r.Method == http.MethodOptions || r.Method == http.MethodHead {
		return res
	}
	if err := json.Unmarshal(w.Body.Bytes(), &res.body); err != nil {
		t.Fatalf("the body %q is not JSON: %v", res.raw, err)
	}
	shape, _ := res.body["error"].(map[string]any)
	if ok := res.status < 400; res.body["ok"] != ok || !ok && (shape["type"] == "" || shape["message"] == "") {
		t.Errorf("status %d with %s", res.status, res.raw)
	}
	return res
}

// cursorKeys returns a source of keys for page cursors.
func cursorKeys(keys ...[]byte) func() [][]byte {
	return func() [][]byte { return keys }
}
