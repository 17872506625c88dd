package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/connectpage"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// Connecting says which vendors can be connected, and where.
type Connecting struct {
	// Gateways lets people connect their own gateways in workspaces that are not sandboxes.
	Gateways bool
	// AllowPrefixes are the networks of such gateways in addition to public addresses.
	AllowPrefixes []netip.Prefix
	// Vendors are the vendors that are not simulated. If nil, they are those of package registry.
	Vendors []adapter.Vendor
	// Clients are the operator's registrations at vendors, by Vendor.Adapter.
	Clients map[string]adapter.Client
}

// Registered returns the vendors that are not simulated.
func (c Connecting) Registered() []adapter.Vendor {
	if c.Vendors != nil {
		return c.Vendors
	}
	return registry.All()
}

// connectable returns the vendors that can be connected in workspaces that are no sandboxes, on connect pages or on the
// command line.
func (c Connecting) connectable() []adapter.Vendor {
	return slices.DeleteFunc(slices.Clone(c.Registered()), func(v adapter.Vendor) bool {
		return c.lacksClient(v) || v.Usage == "" && !c.onPages(v)
	})
}

// hasClient reports whether the operator has registered with the vendor.
func (c Connecting) hasClient(v adapter.Vendor) bool { return c.Clients[v.Adapter].ID != "" }

// lacksClient reports whether the vendor cannot be connected until the operator has registered with it.
func (c Connecting) lacksClient(v adapter.Vendor) bool { return v.NeedsClient && !c.hasClient(v) }

// redirects reports whether people can log in on the vendor's own pages.
func (c Connecting) redirects(v adapter.Vendor) bool {
	return v.Login != nil && v.Login.OAuth != nil && c.hasClient(v)
}

// onPages reports whether people can log in to the vendor on connect pages.
func (c Connecting) onPages(v adapter.Vendor) bool {
	return v.Login != nil && !c.lacksClient(v) && (c.Gateways || !v.EntersAddress) &&
		(len(v.Login.Fields) > 0 || c.redirects(v))
}

// paces returns the paces of vendors, by adapter.
func (c Connecting) paces() map[string]adapter.Pace {
	out := map[string]adapter.Pace{}
	for _, v := range c.Registered() {
		out[v.Adapter] = v.Pace
	}
	return out
}

// startsReadOnly reports whether new devices of the vendor's accounts start out unmanaged.
func startsReadOnly(v adapter.Vendor) bool { return v.Verification.IsReadOnly() && !v.Simulated }

// unverified returns what adapters were tested with that never met their vendor, by adapter.
func (c Connecting) unverified() map[string]string {
	out := map[string]string{}
	for _, v := range c.Registered() {
		if startsReadOnly(v) {
			out[v.Adapter] = v.Verification.String()
		}
	}
	return out
}

// vendorOf returns the vendor of an adapter, or false for an unknown or simulated one.
func (c Connecting) vendorOf(name string) (adapter.Vendor, bool) {
	all := c.Registered()
	i := slices.IndexFunc(all, func(v adapter.Vendor) bool { return v.Adapter == name })
	if i < 0 {
		return adapter.Vendor{}, false
	}
	return all[i], true
}

// env returns the environment of a connection that is checked. guard is nil unless the address is from a connect page.
func (c Connecting) env(v adapter.Vendor, guard adapter.Control) adapter.Env {
	return adapter.Env{Log: slog.New(slog.DiscardHandler), Guard: guard, Client: c.Clients[v.Adapter]}
}

// guard rejects addresses that are neither public nor allowed, so that the URL of a webview gives no access to the
// server's own network.
func (c Connecting) guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if (webhook.Options{AllowPrefixes: c.AllowPrefixes}).Refuses(at.Addr()) {
		return errNotAllowed
	}
	return nil
}

var errNotAllowed = adapter.Errorf(adapter.Invalid, "this server connects to no gateway at that address")

// offered returns the vendors that people can log in to in a workspace.
func (c Connecting) offered(w account.Workspace, simulated []adapter.Vendor) []adapter.Vendor {
	if w.IsSandbox {
		return simulated
	}
	all := slices.DeleteFunc(slices.Clone(c.Registered()), func(v adapter.Vendor) bool { return !c.onPages(v) })
	slices.SortFunc(all, func(a, b adapter.Vendor) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// providers returns what people can log in to in a workspace.
func (c Connecting) providers(w account.Workspace) (out []account.Provider) {
	for _, v := range c.offered(w, simulatedVendors(nil, "")) {
		out = append(out, account.Provider{Name: v.Name, Categories: v.Categories, Capabilities: v.Accepts})
	}
	return out
}

// logins implements connectpage.Vendors: the vendors that people can log in to.
type logins struct {
	Connecting
	simulated []adapter.Vendor
	log       *slog.Logger
}

func newLogins(s *Sandbox, url string, c Connecting, log *slog.Logger) *logins {
	return &logins{Connecting: c, simulated: simulatedVendors(s, url), log: log}
}

// Vendor returns the login form of a vendor, and whether the vendor is known.
func (l *logins) Vendor(in account.Workspace, name string) (connectpage.Vendor, bool) {
	v, ok := l.vendor(in, name)
	if !ok {
		return connectpage.Vendor{}, false
	}
	adapterName := v.Adapter
	if v.Simulated {
		adapterName = v.Name // all simulated vendors share an adapter
	}
	return connectpage.Vendor{
		ReadOnly:    startsReadOnly(v),
		Name:        v.Name,
		Adapter:     adapterName,
		DisplayName: v.DisplayName,
		Fields:      v.Login.Fields,
		Sample:      v.Login.Sample,
		Kinds:       v.Accepts,
		Callback:    l.callback(v),
	}, true
}

// callback returns connectpage.Vendor.Callback.
func (l *logins) callback(v adapter.Vendor) string {
	if !l.redirects(v) {
		return ""
	}
	return v.Adapter
}

func (l *logins) vendor(in account.Workspace, name string) (adapter.Vendor, bool) {
	all := l.offered(in, l.simulated)
	i := slices.IndexFunc(all, func(v adapter.Vendor) bool { return v.Name == name })
	if i < 0 {
		return adapter.Vendor{}, false
	}
	return all[i], true
}

// LogIn implements connectpage.Vendors.
func (l *logins) LogIn(
	ctx context.Context,
	in account.Workspace,
	name string,
	values map[string]string,
) (n account.NewAccount, err error) {
	v, ok := l.vendor(in, name)
	if !ok || len(v.Login.Fields) == 0 {
		return n, fmt.Errorf("logins to %s are not enabled", name)
	}
	c, err := v.Login.Connect(values)
	if err != nil {
		return n, err
	}
	n, err = l.check(ctx, in, v, c)
	if err != nil {
		if concernsOperator(v, err) {
			l.log.WarnContext(ctx, "a login on a connect page failed", "adapter", v.Adapter, "error", err)
		}
		return n, refusal(v, err)
	}
	return n, nil
}

// concernsOperator reports whether only the operator can mend the error. Addresses that people enter are their own
// concern.
func concernsOperator(v adapter.Vendor, err error) bool {
	_, refused := errors.AsType[*login.Refusal](err)
	_, step := errors.AsType[*login.Step](err)
	e := adapter.AsError(err)
	switch {
	case refused || step || v.EntersAddress || v.Simulated:
		return false
	case e == nil:
		return true
	case e.Class == adapter.Invalid:
		return e.ForPerson != "" || namesSetting(e.Message)
	}
	return e.Class != adapter.AuthRevoked
}

// namesSetting reports whether a message is for the operator, because it names flags or variables of the command line.
func namesSetting(message string) bool {
	return strings.Contains(message, "--") || strings.Contains(message, "DEVICEACCESS_")
}

// AuthorizeURL implements connectpage.Vendors.
func (l *logins) AuthorizeURL(in account.Workspace, name string, a connectpage.Authorization) (string, error) {
	v, ok := l.vendor(in, name)
	if !ok || !l.redirects(v) {
		return "", fmt.Errorf("logins on the pages of %s are not enabled", name)
	}
	return oauth.AuthorizeURL(v.Login.OAuth, l.Clients[v.Adapter], request(a)), nil
}

// LogInWithCode implements connectpage.Vendors.
func (l *logins) LogInWithCode(
	ctx context.Context,
	in account.Workspace,
	name string,
	a connectpage.Authorization,
) (n account.NewAccount, err error) {
	v, ok := l.vendor(in, name)
	if !ok || !l.redirects(v) {
		return n, fmt.Errorf("logins on the pages of %s are not enabled", name)
	}
	tokens, err := oauth.Exchange(ctx, v.Login.OAuth, l.env(v, nil), a.Code, request(a))
	var c adapter.Connection
	if err == nil {
		c, err = v.Login.OAuth.Connect(tokens)
	}
	if err == nil {
		n, err = l.check(ctx, in, v, c)
	}
	if err == nil {
		return n, nil
	}
	if e := adapter.AsError(err); e != nil && e.Class == adapter.AuthRevoked {
		return n, &login.Refusal{
			Message: "%s did not accept this login. Please try again.",
			Args:    []any{v.DisplayName},
		}
	}
	l.log.WarnContext(ctx, "a login on a vendor's pages failed", "adapter", v.Adapter, "error", err)
	return n, refusal(v, err)
}

func request(a connectpage.Authorization) oauth.Request {
	return oauth.Request{RedirectURI: a.RedirectURI, State: a.State, Verifier: a.Verifier}
}

// check checks the connection of a login and returns the account to create.
func (l *logins) check(
	ctx context.Context,
	in account.Workspace,
	v adapter.Vendor,
	c adapter.Connection,
) (n account.NewAccount, err error) {
	env := l.env(v, nil)
	env.Workspace = in.ID.String()
	if e, ok := c.(entered); ok {
		e.MarkEntered()
		env.Guard = l.guard
	}
	found, err := c.Check(ctx, env)
	if err != nil {
		return n, err
	}
	if n, err = newAccount(v, in.ID, c, found); err != nil {
		return n, err
	}
	n.Unverified = v.EntersAddress && !rejectsStranger(ctx, c, env)
	return n, nil
}

// refusal turns an error of Connection.Check into one for the person.
func refusal(v adapter.Vendor, err error) error {
	if refused, ok := errors.AsType[*login.Refusal](err); ok {
		return refused
	}
	if step, ok := errors.AsType[*login.Step](err); ok {
		return step
	}
	e := adapter.AsError(err)
	switch {
	case e != nil && e.Class == adapter.AuthRevoked && v.Login.Refused != "":
		return &login.Refusal{Field: v.Login.SecretField, Message: v.Login.Refused}
	case e != nil && e.Class == adapter.AuthRevoked:
		return &login.Refusal{
			Field:   v.Login.SecretField,
			Message: "%s rejects this login.",
			Args:    []any{v.DisplayName},
		}
	case e != nil && e.ForPerson != "":
		return &login.Refusal{Field: v.Login.AddressField, Message: e.ForPerson}
	case e != nil && e.Class == adapter.Invalid && namesSetting(e.Message):
		return &login.Refusal{
			Message: "%s cannot be connected with the settings of this server. Please tell its operator.",
			Args:    []any{v.DisplayName},
		}
	case e != nil && e.Class == adapter.Invalid:
		return &login.Refusal{Field: v.Login.AddressField, Message: sentence(e.Message)}
	case v.EntersAddress: // details would reveal what else is at the address
		return &login.Refusal{
			Field:   v.Login.AddressField,
			Message: "We could not reach %s at this address. Check the address, and that it can be reached from the internet.",
			Args:    []any{v.DisplayName},
		}
	case e != nil, errors.Is(err, context.DeadlineExceeded):
		return &login.Refusal{
			Message: "%s does not respond. Please try again in a few minutes.",
			Args:    []any{v.DisplayName},
		}
	}
	return err
}

// rejectsStranger reports whether a gateway rejects a wrong password, so that the login proves control of the gateway. A
// login without a password proves nothing, since many gateways accept connections without a user.
func rejectsStranger(ctx context.Context, c adapter.Connection, env adapter.Env) bool {
	s, ok := c.(adapter.Stranger)
	if !ok {
		return false
	}
	stranger := s.Stranger()
	if stranger == nil {
		return false
	}
	_, err := stranger.Check(ctx, env)
	e := adapter.AsError(err)
	return e != nil && e.Class == adapter.AuthRevoked
}

// sentence makes a sentence of an error message.
func sentence(message string) string {
	return strings.ToUpper(message[:1]) + message[1:] + "."
}
