// Package accesscloud implements adapter.AccessSystems for vendors whose cloud follows the contract that package
// sandbox documents, including the simulated one. It must not know which vendor it calls.
//
// The error_code of an error determines its class; the status code counts only when the error_code is missing or
// unknown. A 404 without an error_code comes from a proxy and says nothing about a user.
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

// Config configures New.
type Config struct {
	// BaseURL is the URL of the vendor's API, without a trailing slash.
	BaseURL string
	// Token is the account's bearer token.
	Token string
	// HTTP defaults to a client with a timeout of 30 s. Redirects are never followed.
	HTTP *http.Client
	// Transport wraps the transport, unless HTTP is set.
	Transport adapter.WrapTransport
	// Log defaults to no logging.
	Log *slog.Logger
}

// Adapter accesses one account at one vendor.
type Adapter struct {
	base, token string
	http        *http.Client
	log         *slog.Logger
}

var (
	_ adapter.AccessSystems   = (*Adapter)(nil)
	_ adapter.AccessSimulator = (*Adapter)(nil)
)

// New returns an adapter. It sends nothing.
func New(c Config) *Adapter {
	if c.HTTP == nil {
		transport := adapter.NewTransport()
		transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 4, time.Minute
		c.HTTP = &http.Client{Timeout: 30 * time.Second, Transport: c.Transport.Wrap(transport)}
	}
	client := *c.HTTP
	// The token must not reach another host.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Adapter{
		base:  c.BaseURL,
		token: c.Token,
		http:  &client,
		log:   c.Log,
	}
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
	// Entrances is absent if it is empty, because older clouds do not know it.
	Entrances adapter.List[string] `json:"entrance_ids,omitempty"`
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
	if got.Systems == nil { // otherwise all systems would count as removed
		return nil, adapter.Errorf(adapter.Transient, "the response does not contain the systems")
	}
	out := make([]adapter.AccessSystem, 0, len(got.Systems))
	for _, s := range got.Systems {
		if !inPath(s.ID) {
			continue
		}
		out = append(out, adapter.AccessSystem{
			Ref:      adapter.SystemRef(s.ID),
			Name:     s.Name,
			TimeZone: s.TimeZone,
			Online:   s.Online == nil || *s.Online,
		})
	}
	return out, nil
}

// ReadSystem implements adapter.AccessSystems.
func (a *Adapter) ReadSystem(ctx context.Context, system adapter.SystemRef) (adapter.SystemContent, error) {
	var got struct {
		Users     adapter.List[wireUser]     `json:"users"`
		Groups    adapter.List[wireGroup]    `json:"groups"`
		Entrances adapter.List[wireEntrance] `json:"entrances"`
	}
	var out adapter.SystemContent
	if err := a.do(ctx, http.MethodGet, path(system), nil, &got); err != nil {
		return out, err
	}
	if got.Users == nil || got.Groups == nil || got.Entrances == nil { // otherwise all would count as deleted
		return out, adapter.Errorf(adapter.Transient,
			"the response does not contain the users, the groups, and the entrances")
	}
	for _, u := range got.Users {
		if !inPath(u.ID) {
			continue
		}
		out.Users = append(out.Users, adapter.AccessUser{
			Ref:       adapter.UserRef(u.ID),
			Key:       u.ExternalID,
			FullName:  u.FullName,
			Email:     u.Email,
			Phone:     u.Phone,
			StartsAt:  u.StartsAt,
			EndsAt:    u.EndsAt,
			Suspended: u.Suspended,
			Groups:    u.Groups[:min(len(u.Groups), maxRefs)],
			Entrances: u.Entrances[:min(len(u.Entrances), maxRefs)],
		})
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
func (a *Adapter) PutUser(ctx context.Context, system adapter.SystemRef,
	u adapter.AccessUser,
) (adapter.UserRef, error) {
	asked := wireUser{
		ExternalID: u.Key,
		FullName:   u.FullName,
		Email:      u.Email,
		Phone:      u.Phone,
		StartsAt:   u.StartsAt,
		EndsAt:     u.EndsAt,
		Suspended:  u.Suspended,
		Groups:     u.Groups,
		Entrances:  u.Entrances,
	}
	method, where := http.MethodPost, path(system)+"/users"
	if u.Ref != "" {
		method, where = http.MethodPut, where+"/"+url.PathEscape(string(u.Ref))
	}
	var got wireUser
	if err := a.do(ctx, method, where, asked, &got); err != nil {
		return "", err
	}
	if !inPath(got.ID) {
		return "", adapter.Errorf(adapter.Unconfirmed, "the response does not contain the identifier of the user")
	}
	return adapter.UserRef(got.ID), nil
}

// errNoUser is joined to the error of a USER_NOT_FOUND response.
var errNoUser = errors.New("no such user")

// DeleteUser implements adapter.AccessSystems.
func (a *Adapter) DeleteUser(ctx context.Context, system adapter.SystemRef, user adapter.UserRef) error {
	err := a.do(ctx, http.MethodDelete, path(system)+"/users/"+url.PathEscape(string(user)), nil, nil)
	if errors.Is(err, errNoUser) {
		return nil
	}
	return err
}

// errNoGroup is joined to the error of a GROUP_NOT_FOUND response.
var errNoGroup = errors.New("no such group")

// DeleteGroup implements adapter.AccessSystems.
func (a *Adapter) DeleteGroup(ctx context.Context, system adapter.SystemRef, group string) error {
	if !inPath(group) {
		return adapter.Errorf(adapter.NotSupported, "the vendor's identifier of the group cannot be used in a URL")
	}
	err := a.do(ctx, http.MethodDelete, path(system)+"/groups/"+url.PathEscape(group), nil, nil)
	if errors.Is(err, errNoGroup) {
		return nil
	}
	return err
}

// UnlockEntrance implements adapter.AccessSystems.
func (a *Adapter) UnlockEntrance(ctx context.Context, system adapter.SystemRef, entrance string) error {
	if !inPath(entrance) {
		return adapter.Errorf(adapter.NotSupported, "the vendor's identifier of the entrance cannot be used in a URL")
	}
	where := path(system) + "/entrances/" + url.PathEscape(entrance) + "/unlock"
	err := a.do(ctx, http.MethodPost, where, struct{}{}, nil)
	// A second command could open the door again.
	if e := adapter.AsError(err); errors.Is(err, errUnclear) && e != nil {
		return adapter.Errorf(adapter.Unconfirmed, "%s", e.Message)
	}
	return err
}

// errUnclear is joined to the error of a response that does not say whether a write was executed.
var errUnclear = errors.New("the vendor failed")

// Disconnect implements adapter.AccessSimulator.
func (a *Adapter) Disconnect(ctx context.Context) error {
	return a.do(ctx, http.MethodPost, "/sandbox/account/revoke", struct{}{}, nil)
}

// inPath reports whether an identifier can be a path segment. A segment of dots would denote another resource.
func inPath(id string) bool { return id != "" && id != "." && id != ".." }

func path(system adapter.SystemRef) string { return "/systems/" + url.PathEscape(string(system)) }

// maxRefs is the maximum number of groups of a user, and of entrances; further ones are ignored.
const maxRefs = 1000

// responseLimit is the maximum size of a response in bytes; 10 000 users take about 4 MB.
const responseLimit = 16 << 20

// words lists the fixed segments of paths; any other segment is an identifier.
var words = []string{"systems", "users", "groups", "entrances", "unlock", "sandbox", "account", "revoke"}

// do calls the vendor and decodes the response into out, which may be nil.
func (a *Adapter) do(ctx context.Context, method, where string, body, out any) (err error) {
	ctx, span := adapter.StartSpan(ctx, "accesscloud", a.base, method, where, words)
	defer func() { adapter.EndSpan(span, err) }()
	doubt := adapter.Unconfirmed // the class of an unknown outcome
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
		// GetConn is called again when a kept connection was dead.
		GetConn: func(string) { dialing.Store(true); connected.Store(false) },
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
		return a.unansweredError(ctx, adapter.GatewayDown, err)
	}
	if err != nil {
		return a.unansweredError(ctx, doubt, err)
	}
	defer resp.Body.Close()
	span.Set(traces.Status(resp.StatusCode))
	// After an upgrade, no deadline would end the reading.
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return adapter.Errorf(doubt, "the vendor answered in another protocol than HTTP")
	}
	var found error
	err = adapter.ReadResponse(ctx, resp.Body, responseLimit, func(data []byte) error {
		switch {
		case resp.StatusCode/100 != 2:
			found = a.refusal(method, resp, data)
		case out != nil && json.Unmarshal(data, out) != nil:
			found = adapter.Errorf(doubt, "the response is not the expected JSON")
		}
		return nil
	})
	switch {
	case errors.Is(err, adapter.ErrTooLarge):
		return adapter.Errorf(doubt, "the response is larger than %d MiB, or has too many parts", responseLimit>>20)
	case errors.Is(err, adapter.ErrSaturated) && method == http.MethodGet:
		return err
	case err != nil:
		return a.unansweredError(ctx, doubt, err)
	}
	return found
}

// unansweredError returns the error of a call without a response.
func (a *Adapter) unansweredError(ctx context.Context, doubt adapter.Class, err error) error {
	failure := a.failure(doubt, "no response: "+adapter.Reason(err))
	if doubt != adapter.Unconfirmed {
		failure = a.failure(adapter.GatewayDown, "the vendor cannot be reached: "+adapter.Reason(err))
	}
	if ctx.Err() != nil {
		return errors.Join(failure, ctx.Err())
	}
	return failure
}

// classes maps the known error codes.
var classes = map[string]adapter.Class{
	"UNAUTHORIZED":        adapter.AuthRevoked,
	"SYSTEM_NOT_FOUND":    adapter.NotFound,
	"USER_NOT_FOUND":      adapter.NotFound,
	"GROUP_NOT_FOUND":     adapter.NotFound,
	"ENTRANCE_NOT_FOUND":  adapter.NotFound,
	"SYSTEM_OFFLINE":      adapter.Offline,
	"SYSTEM_FULL":         adapter.Full,
	"INVALID_USER":        adapter.Invalid,
	"INVALID_REQUEST":     adapter.Invalid,
	"UNLOCK_REFUSED":      adapter.Invalid,
	"NOT_SUPPORTED":       adapter.NotSupported,
	"RATE_LIMITED":        adapter.Transient,
	"SERVICE_UNAVAILABLE": adapter.Transient,
}

// maxRetryAfter bounds the wait that a vendor may request.
const maxRetryAfter = time.Hour

// refusal returns the error of a response other than 2xx.
func (a *Adapter) refusal(method string, resp *http.Response, data []byte) error {
	var w struct {
		ErrorCode    string `json:"error_code"`
		Message      string `json:"message"`
		RetryAfterMS int64  `json:"retry_after_ms"`
	}
	_ = json.Unmarshal(data, &w) // without JSON there is no error code
	class, known := classes[w.ErrorCode]
	writes := method != http.MethodGet
	switch status := resp.StatusCode; {
	case known:
	case status == http.StatusUnauthorized:
		class = adapter.AuthRevoked
	case writes && (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity):
		class = adapter.Invalid
	case writes && (status == http.StatusRequestTimeout || status == http.StatusBadGateway ||
		status == http.StatusGatewayTimeout):
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
	switch {
	case w.ErrorCode == "USER_NOT_FOUND":
		return fmt.Errorf("%w: %w", errNoUser, e)
	case w.ErrorCode == "GROUP_NOT_FOUND":
		return fmt.Errorf("%w: %w", errNoGroup, e)
	case !known && resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %w", errUnclear, e)
	}
	return e
}

// retryAfter returns the wait that the vendor requests. The body takes precedence because it is more precise.
// Retry-After is read in both forms (RFC 9110 section 10.2.3), a date relative to the response's Date.
func retryAfter(resp *http.Response, ms int64) time.Duration {
	wait := time.Duration(min(max(ms, 0), maxRetryAfter.Milliseconds())) * time.Millisecond
	if wait > 0 {
		return wait
	}
	header := resp.Header.Get("Retry-After")
	seconds, err := strconv.ParseInt(header, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // on ErrRange, seconds is the largest int64
		return time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// failure returns an error with the vendor's message, sanitized for display.
func (a *Adapter) failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.SafeMessage(message, a.token))
}
