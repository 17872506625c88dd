// Package accesscloud reaches any vendor of access systems whose cloud follows the contract that package sandbox
// documents, the simulated one among them. It must not know which vendor it speaks to.
//
// An error's error_code decides what it means, a status code only where that is missing or unknown. A 404 without a
// code is a proxy's and says nothing about a user.
package accesscloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Config of New.
type Config struct {
	BaseURL string       // of the vendor's API, without a slash at its end
	Token   string       // the account's bearer token
	HTTP    *http.Client // nil: one of its own, with a timeout of 30 s. Redirects are not followed
	Log     *slog.Logger // nil: none
}

// Adapter is one account at one vendor.
type Adapter struct {
	base, token string
	http        *http.Client
	log         *slog.Logger
}

var (
	_ adapter.AccessSystems   = (*Adapter)(nil)
	_ adapter.AccessSimulator = (*Adapter)(nil)
)

// New makes an adapter; nothing is sent.
func New(c Config) *Adapter {
	if c.HTTP == nil {
		transport := adapter.Transport()
		transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 4, time.Minute
		c.HTTP = &http.Client{Timeout: 30 * time.Second, Transport: transport}
	}
	client := *c.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token is the vendor's alone
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Adapter{base: c.BaseURL, token: c.Token, http: &client, log: c.Log}
}

// Close implements adapter.AccessSystems.
func (a *Adapter) Close() error {
	a.http.CloseIdleConnections()
	return nil
}

type wireSystem struct {
	ID       string `json:"system_id"`
	Name     string `json:"name"`
	TimeZone string `json:"time_zone"`
	Online   *bool  `json:"online"`
}

type wireUser struct {
	ID         string               `json:"user_id,omitempty"`
	ExternalID string               `json:"external_id,omitempty"`
	FullName   string               `json:"full_name"`
	Email      string               `json:"email,omitempty"`
	Phone      string               `json:"phone,omitempty"`
	StartsAt   *time.Time           `json:"starts_at"`
	EndsAt     *time.Time           `json:"ends_at"`
	Suspended  bool                 `json:"suspended"`
	Groups     adapter.List[string] `json:"group_ids"`
}

type wireGroup struct {
	ID        string               `json:"group_id"`
	Name      string               `json:"name"`
	Entrances adapter.List[string] `json:"entrance_ids"`
}

type wireEntrance struct {
	ID   string `json:"entrance_id"`
	Name string `json:"name"`
}

// Systems implements adapter.AccessSystems.
func (a *Adapter) Systems(ctx context.Context) ([]adapter.AccessSystem, error) {
	var got struct {
		Systems adapter.List[wireSystem] `json:"systems"`
	}
	if err := a.do(ctx, http.MethodGet, "/systems", nil, &got); err != nil {
		return nil, err
	}
	if got.Systems == nil { // all would count as gone
		return nil, adapter.Errorf(adapter.Transient, "the answer does not tell the systems")
	}
	out := make([]adapter.AccessSystem, 0, len(got.Systems))
	for _, s := range got.Systems {
		if !inPath(s.ID) {
			continue
		}
		out = append(out, adapter.AccessSystem{Ref: adapter.SystemRef(s.ID), Name: s.Name, TimeZone: s.TimeZone, Online: s.Online == nil || *s.Online})
	}
	return out, nil
}

// Look implements adapter.AccessSystems.
func (a *Adapter) Look(ctx context.Context, system adapter.SystemRef) (adapter.SystemContent, error) {
	var got struct {
		Users     adapter.List[wireUser]     `json:"users"`
		Groups    adapter.List[wireGroup]    `json:"groups"`
		Entrances adapter.List[wireEntrance] `json:"entrances"`
	}
	var out adapter.SystemContent
	if err := a.do(ctx, http.MethodGet, path(system), nil, &got); err != nil {
		return out, err
	}
	if got.Users == nil || got.Groups == nil || got.Entrances == nil { // all of them would count as deleted
		return out, adapter.Errorf(adapter.Transient, "the answer does not tell the users, the groups and the entrances")
	}
	for _, u := range got.Users {
		if !inPath(u.ID) {
			continue
		}
		out.Users = append(out.Users, adapter.AccessUser{Ref: adapter.UserRef(u.ID), Key: u.ExternalID, FullName: u.FullName, Email: u.Email, Phone: u.Phone,
			StartsAt: u.StartsAt, EndsAt: u.EndsAt, Suspended: u.Suspended, Groups: u.Groups[:min(len(u.Groups), mostGroups)]})
	}
	for _, g := range got.Groups {
		out.Groups = append(out.Groups, adapter.AccessGroup{Ref: g.ID, Name: g.Name, Entrances: g.Entrances})
	}
	for _, e := range got.Entrances {
		out.Entrances = append(out.Entrances, adapter.Entrance{Ref: e.ID, Name: e.Name})
	}
	return out, nil
}

// PutUser implements adapter.AccessSystems.
func (a *Adapter) PutUser(ctx context.Context, system adapter.SystemRef, u adapter.AccessUser) (adapter.UserRef, error) {
	asked := wireUser{ExternalID: u.Key, FullName: u.FullName, Email: u.Email, Phone: u.Phone, StartsAt: u.StartsAt, EndsAt: u.EndsAt, Suspended: u.Suspended, Groups: u.Groups}
	method, where := http.MethodPost, path(system)+"/users"
	if u.Ref != "" {
		method, where = http.MethodPut, where+"/"+url.PathEscape(string(u.Ref))
	}
	var got wireUser
	if err := a.do(ctx, method, where, asked, &got); err != nil {
		return "", err
	}
	if !inPath(got.ID) {
		return "", adapter.Errorf(adapter.Unconfirmed, "the answer does not name the user")
	}
	return adapter.UserRef(got.ID), nil
}

// errNoUser is joined to the error of an answer that the system has no such user.
var errNoUser = errors.New("no such user")

// DeleteUser implements adapter.AccessSystems.
func (a *Adapter) DeleteUser(ctx context.Context, system adapter.SystemRef, user adapter.UserRef) error {
	err := a.do(ctx, http.MethodDelete, path(system)+"/users/"+url.PathEscape(string(user)), nil, nil)
	if errors.Is(err, errNoUser) {
		return nil
	}
	return err
}

// Disconnect implements adapter.AccessSimulator.
func (a *Adapter) Disconnect(ctx context.Context) error {
	return a.do(ctx, http.MethodPost, "/sandbox/account/revoke", struct{}{}, nil)
}

// inPath says whether an identifier can stand in the path of a request. With one of dots it would be another's path.
func inPath(id string) bool { return id != "" && id != "." && id != ".." }

func path(system adapter.SystemRef) string { return "/systems/" + url.PathEscape(string(system)) }

// mostGroups bounds those of a user; the others are as if it was not in them.
const mostGroups = 1000

// answerLimit bounds what is read of an answer; 10 000 users take about 4 MB.
const answerLimit = 16 << 20

// words are those of paths; what else is in one is an identifier.
var words = []string{"systems", "users", "sandbox", "account", "revoke"}

// do makes a call and decodes its answer into out, which may be nil.
func (a *Adapter) do(ctx context.Context, method, where string, body, out any) (err error) {
	ctx, span := adapter.Trace(ctx, "accesscloud", a.base, method, where, words)
	defer func() { adapter.Traced(span, err) }()
	doubt := adapter.Unconfirmed // the class of what may have taken effect
	if method == http.MethodGet {
		doubt = adapter.Transient
	}
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return adapter.Errorf(adapter.Invalid, "the request cannot be written as JSON")
		}
		sent = bytes.NewReader(data)
	}
	var dialing, connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { dialing.Store(true); connected.Store(false) }, // again, where a kept connection was dead
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, method, a.base+where, sent)
	if err != nil {
		return adapter.Errorf(adapter.GatewayDown, "the vendor's address is not a valid URL")
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if err := adapter.MaySend(ctx); err != nil {
		return err
	}
	resp, err := a.http.Do(req)
	if err != nil && dialing.Load() && !connected.Load() { // nothing was sent
		return a.lost(ctx, adapter.GatewayDown, err)
	}
	if err != nil {
		return a.lost(ctx, doubt, err)
	}
	defer resp.Body.Close()
	span.Set(traces.Status(resp.StatusCode))
	if resp.StatusCode == http.StatusSwitchingProtocols { // the connection is ours now, and no deadline would end the reading of it
		return adapter.Errorf(doubt, "the vendor answered in another protocol than HTTP")
	}
	var found error
	err = adapter.ReadAnswer(ctx, resp.Body, answerLimit, func(data []byte) error {
		switch {
		case resp.StatusCode/100 != 2:
			found = a.refusal(method, resp, data)
		case out != nil && json.Unmarshal(data, out) != nil:
			found = adapter.Errorf(doubt, "the answer is not the JSON that was expected")
		}
		return nil
	})
	switch {
	case errors.Is(err, adapter.ErrLarge):
		return adapter.Errorf(doubt, "the answer is larger than %d MiB, or has too many parts", answerLimit>>20)
	case errors.Is(err, adapter.ErrCrowded) && method == http.MethodGet:
		return err
	case err != nil:
		return a.lost(ctx, doubt, err)
	}
	return found
}

// lost is the error of a call that got no answer.
func (a *Adapter) lost(ctx context.Context, doubt adapter.Class, err error) error {
	failure := a.failure(doubt, "no answer: "+adapter.Reason(err))
	if doubt != adapter.Unconfirmed {
		failure = a.failure(adapter.GatewayDown, "the vendor cannot be reached: "+adapter.Reason(err))
	}
	if ctx.Err() != nil {
		return errors.Join(failure, ctx.Err())
	}
	return failure
}

// classes are the error codes that are known.
var classes = map[string]adapter.Class{
	"UNAUTHORIZED":        adapter.AuthRevoked,
	"SYSTEM_NOT_FOUND":    adapter.NotFound,
	"USER_NOT_FOUND":      adapter.NotFound,
	"SYSTEM_OFFLINE":      adapter.Offline,
	"SYSTEM_FULL":         adapter.Full,
	"INVALID_USER":        adapter.Invalid,
	"INVALID_REQUEST":     adapter.Invalid,
	"RATE_LIMITED":        adapter.Transient,
	"SERVICE_UNAVAILABLE": adapter.Transient,
}

// longestWait bounds what a vendor may ask for.
const longestWait = time.Hour

// refusal is the error of an answer other than 2xx.
func (a *Adapter) refusal(method string, resp *http.Response, data []byte) error {
	var w struct {
		ErrorCode    string `json:"error_code"`
		Message      string `json:"message"`
		RetryAfterMS int64  `json:"retry_after_ms"`
	}
	_ = json.Unmarshal(data, &w) // what is no JSON has no error code
	class, known := classes[w.ErrorCode]
	writes := method != http.MethodGet
	switch status := resp.StatusCode; {
	case known:
	case status == http.StatusUnauthorized:
		class = adapter.AuthRevoked
	case writes && (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity):
		class = adapter.Invalid
	case writes && (status == http.StatusRequestTimeout || status == http.StatusBadGateway || status == http.StatusGatewayTimeout):
		class = adapter.Unconfirmed
	default:
		class = adapter.Transient
	}
	if class == adapter.Invalid && !writes {
		class = adapter.Transient
	}
	message := w.Message
	if message == "" {
		message = fmt.Sprintf("the vendor answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	e := a.failure(class, message)
	e.RetryAfter = retryAfter(resp, w.RetryAfterMS)
	a.log.Debug("the vendor refused", "method", method, "status", resp.StatusCode, "class", class)
	if w.ErrorCode == "USER_NOT_FOUND" {
		return fmt.Errorf("%w: %w", errNoUser, e)
	}
	return e
}

// retryAfter reads both forms of Retry-After (RFC 9110 section 10.2.3), a date against the answer's own. What the body
// says is more exact.
func retryAfter(resp *http.Response, ms int64) time.Duration {
	wait := time.Duration(min(max(ms, 0), longestWait.Milliseconds())) * time.Millisecond
	if wait > 0 {
		return wait
	}
	header := resp.Header.Get("Retry-After")
	seconds, err := strconv.ParseInt(header, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range it is the largest there is
		return time.Duration(min(max(seconds, 0), int64(longestWait/time.Second))) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), longestWait)
}

// failure is an error whose message, the vendor's, may be shown.
func (a *Adapter) failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.Line(message, a.token))
}
