package adapter

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Vendor is everything that the server knows about a vendor: constants, a login, and a constructor of connections.
// Connect pages, the command line, the API, and the reconciler read it. None of them names a vendor.
//
// To add a vendor:
//
//  1. Write its package below server/adapter: the Adapter, and a Connection that accounts store as JSON.
//  2. Connection.Check makes one read-only call, and stores the user id that the vendor reports in the connection.
//  3. Connection.Address contains that user id, so that each account of the vendor is connected once.
//  4. Connection.Open returns the Adapter. It may take from Env: Log, Client, Secrets, PushURLs, and Budget.
//     Env.Transport wraps the transport of HTTP. Package vendorhttp sends requests; its option Pinned is for devices
//     with a certificate of no public CA. Package subscription keeps a subscription to signed pushes.
//  5. Write vendor.go with a function Vendor that returns the constants, the Settings, and the Login.
//  6. Checked.Credentials starts credentials that expire, and Env.Secrets (TokenSource) renews them.
//  7. For OAuth, TokenSource.Refresh is oauth.Refresh. Operators register /connect/back/ADAPTER as redirect URL.
//  8. Set Verification to what the tests compare the adapter with. Pace and CallsPerHour follow the vendor's limits.
//  9. Add the line to server/adapter/registry. That is the only line outside of the package.
//  10. Run the conformance suite adaptertest against a stateful fake, whose both sides contract.yaml judges.
//  11. Play test/vendorstory with the fake: a person connects the account, and Terraform manages a code.
//  12. Regenerate the table of vendors: go test ./server/adapter/registry -update.
type Vendor struct {
	// Adapter is the name that accounts store, such as "zwavejs". It never changes.
	Adapter string
	// Name is the device_provider_name and the account type of the API, such as "zwave_js". Vendors that share an
	// Adapter differ in it.
	Name string
	// DisplayName is the name for people.
	DisplayName string
	// Usage describes `accounts connect` in the command line's help; empty if commands cannot connect the vendor.
	Usage string
	// Simulated vendors are offered in sandbox workspaces only, and all others elsewhere.
	Simulated bool
	// Protocol means that the vendor is no brand of devices, but a protocol of several. The API does not list it.
	Protocol bool
	// EntersAddress means that people enter an address on connect pages. The operator must allow such logins, because
	// the server dials the address.
	EntersAddress bool
	// NeedsClient means that logins work only if the operator has set a Client for the vendor.
	NeedsClient bool
	// Categories are the provider_categories of the API.
	Categories []string
	// Accepts holds the kinds of devices that are taken from accounts, such as "lock".
	Accepts []string
	// Can is what the vendor's devices can do at best.
	Can capability.Set
	// Settings are the settings of a connection on the command line.
	Settings []Setting
	// Login is the login on connect pages; nil if there is none.
	Login *Login
	// AppPush reads a push that the vendor sends to one URL for all accounts of the operator's application; nil if
	// pushes arrive by account, where an adapter has a method Receive(http.ResponseWriter, *http.Request).
	AppPush func(r *http.Request) (AppPush, error)
	// New returns an empty connection for the stored JSON of an account.
	New func() Connection
	// Pace says how often the server reads.
	Pace Pace
	// CallsPerHour is the vendor's limit of calls of one account in an hour; 0: none. Env.Budget keeps to it.
	CallsPerHour int
	// Verification says what the adapter has been tested with.
	Verification Verification
}

// IsAccessSystem reports whether accounts of the vendor have access systems instead of devices.
func (v Vendor) IsAccessSystem() bool { return len(v.Accepts) == 1 && v.Accepts[0] == AccessControl }

// Values of Vendor.Accepts.
const (
	Locks         = "lock"
	Thermostats   = "thermostat"
	NoiseSensors  = "noise_sensor"
	AccessControl = "access_control"
)

// Values of Vendor.Categories.
const (
	CategoryStable        = "stable"
	CategoryBeta          = "beta"
	CategorySmartlocks    = "consumer_smartlocks"
	CategoryAccessSystems = "access_control_systems"
)

// Setting is one setting of a connection on the command line.
type Setting struct {
	// Name is the name of the flag. The value of a Secret comes from the flag NAME-file or from the variable
	// DEVICEACCESS_GATEWAY_NAME, because other users can see a process's flags.
	Name string
	// Usage is the help of the flag. For a Secret it names the secret, such as "password" or "account's token".
	Usage string
	Kind  SettingKind
	// Required settings must be set to connect an account.
	Required bool
	// Default is the value of an account that is connected without the setting.
	Default string
}

// SettingKind says how the command line reads a Setting.
type SettingKind int

const (
	// TextSetting is the text of the flag.
	TextSetting SettingKind = iota
	// SecretSetting is read from a file, from standard input, or from a variable.
	SecretSetting
	// FileSetting is the content of a file that the flag names, such as a certificate in PEM. An empty name is an
	// empty value.
	FileSetting
)

// CAUsage is the help of a setting with the certificate of a private CA.
const CAUsage = "trust the CA certificate in `FILE` (PEM) in addition to those of this machine; an empty name " +
	"removes it"

// Settings holds the values of settings that are set, by Setting.Name.
type Settings map[string]string

// Set copies the setting to *to if it is set.
func (s Settings) Set(name string, to *string) {
	if value, ok := s[name]; ok {
		*to = value
	}
}

// Connection is the address and the credentials of one account. Its JSON is the configuration of the account.
type Connection interface {
	// Adapter returns Vendor.Adapter.
	Adapter() string
	// Address returns what is connected, without credentials and in a canonical form, such as
	// "mqtts://broker:8883 zigbee2mqtt". Each address of an adapter can be connected once.
	Address() string
	// Apply changes the settings that are set. Its error says what is wrong with them.
	Apply(set Settings) error
	// Check connects once, read-only. It may complete the connection with what the vendor reports, such as a user id.
	// It fails with an *Error that says what to do, with a *login.Refusal, or with a *login.Step.
	Check(ctx context.Context, env Env) (Checked, error)
}

// DeviceConnection is a Connection to devices.
type DeviceConnection interface {
	Connection
	// Open returns the adapter of the account. It should not wait for the vendor.
	Open(ctx context.Context, env Env) (Adapter, error)
}

// SystemConnection is a Connection to access systems.
type SystemConnection interface {
	Connection
	// OpenSystems returns the adapter of the account. It should not wait for the vendor.
	OpenSystems(ctx context.Context, env Env) (AccessSystems, error)
}

// Stranger is implemented by connections to gateways, whose credentials a gateway may ignore.
type Stranger interface {
	// Stranger returns the same connection with a wrong password, or nil if there is no password. A login proves
	// control of the gateway only if the gateway rejects the stranger.
	Stranger() Connection
}

// Checked is what Connection.Check finds out.
type Checked struct {
	// Gateway identifies a gateway regardless of its address; empty for a cloud.
	Gateway string
	// Email and Username are the login name; at most one of them is set.
	Email, Username string
	// DisplayName names the account for people; empty: the adapter and the address.
	DisplayName string
	// Provider is the device_provider_name of all devices of the account; empty: several, or unknown.
	Provider string
	// Credentials are what Secrets.Rotate starts with; nil for credentials that do not expire.
	Credentials []byte
	// KeepCredentials means that the credentials of the account stay, because the connection is that of an earlier
	// login that Check cannot repeat. Otherwise Credentials replace them, also if they are nil.
	KeepCredentials bool
}

// RecordGateway records the identity of a gateway that Check meets, for Config.CheckGateway.
func (c *Checked) RecordGateway(_ context.Context, gateway string) error {
	c.Gateway = gateway
	return nil
}

// Env is what the server provides to a connection.
type Env struct {
	// Account is the identifier of the account; empty while it is being connected.
	Account string
	// Workspace is the identifier of the workspace.
	Workspace string
	// Log receives messages with the account's identifier. It is never nil.
	Log *slog.Logger
	// Guard checks each address before it is dialed, as Control of net.Dialer; nil accepts all. It is set for
	// addresses from connect pages.
	Guard Control
	// CheckGateway receives the identity of the gateway before it is used; nil for clouds and while connecting.
	CheckGateway func(ctx context.Context, gateway string) error
	// Client is the operator's registration at the vendor; empty if there is none.
	Client Client
	// Secrets stores what the adapter must remember; nil while connecting.
	Secrets Secrets
	// Budget counts the calls of the account; nil while connecting.
	Budget Budget
	// PushURLs returns where the server receives the account's pushes, the current URL first; nil while connecting, and
	// when an account is checked: the adapter must then create no subscription. Former and future URLs follow, as keys
	// rotate.
	PushURLs func(ctx context.Context) ([]string, error)
	// Transport wraps the HTTP transport of the adapter, to count and record the calls of the vendor.
	Transport WrapTransport
}

// Control accepts or rejects an address before it is dialed, like Control of net.Dialer.
type Control = func(network, address string, c syscall.RawConn) error

// Client identifies the operator's application at a vendor (OAuth 2.0, RFC 6749, section 2.2).
type Client struct {
	ID     string
	Secret string
}

// PageOrigin marks a connection that a person entered on a connect page. Connections with an address embed it. The
// server guards the address until an operator sets another.
type PageOrigin struct {
	FromWebview bool `json:"from_webview,omitempty"`
}

// MarkEntered marks the connection.
func (o *PageOrigin) MarkEntered() { o.FromWebview = true }

// IsEntered reports whether the connection is marked.
func (o PageOrigin) IsEntered() bool { return o.FromWebview }

// Login is a login on connect pages.
type Login struct {
	// Fields are the inputs of the form; none if people can log in on the vendor's pages only.
	Fields []login.Field
	// Sample says what to enter if the vendor is simulated.
	Sample login.Sample
	// Connect returns the connection of the entered values, by field name. It fails with a *login.Refusal, or with a
	// *login.Step, after which it is called with the values of all steps. The server then checks the connection.
	Connect func(entered map[string]string) (Connection, error)
	// AddressField is the field that a wrong address is reported at; empty if none is entered.
	AddressField string
	// SecretField is the field that refused credentials are reported at.
	SecretField string
	// Refused is what a person reads about refused credentials; empty: a general sentence.
	Refused string
	// OAuth is a login on the vendor's own pages, which is offered if the operator has set a Client; nil: none.
	OAuth *OAuth
}

// OAuth is a login by authorization code with PKCE (RFC 6749, section 4.1, and RFC 7636). The server redirects the
// person to the vendor, and exchanges the code. Package oauth refreshes the tokens.
type OAuth struct {
	AuthorizeURL string
	TokenURL     string
	Scopes       []string
	// BasicAuth sends the client's secret in the Authorization header. By default, it is in the body of the request.
	BasicAuth bool
	// Connect returns the connection of the tokens. Its Check returns them in Checked.Credentials, and does not fail
	// with a *login.Step.
	//
	// If the vendor also has Login.Fields, the JSON of the connection always contains their secrets, so that a login
	// by one way removes the secrets of the other.
	Connect func(tokens Tokens) (Connection, error)
}

// AppPush is a push to the operator's application.
type AppPush struct {
	Events []AppEvent
	// Response is the body of the response.
	Response string
}

// AppEvent is an event of a push. It is sent to the adapters of the vendor's accounts that have Event.Device, if they
// implement EventReceiver. A push proves nothing, so an event only says where to look.
type AppEvent struct {
	// Address is the Connection.Address of the account; empty if the push does not name the account.
	Address string
	Event   Event
}

// EventReceiver is implemented by adapters of vendors with an AppPush.
type EventReceiver interface {
	// ReceiveEvent forwards an event to the channel of events, and reports whether the adapter is open.
	ReceiveEvent(e Event) bool
}

// Pace says how often the server reads the devices of an account. Zero values mean the server's intervals.
type Pace struct {
	// List is the interval between lists of the account's devices.
	List time.Duration
	// Read is the interval between reads of a device whose events may get lost (Device.LossyEvents).
	Read time.Duration
}

// Verification says what an adapter has been tested with.
type Verification struct {
	Level VerificationLevel
	// With names the hardware, the program, or the documentation.
	With string
	// Date is the date of the documentation, such as "2026-05".
	Date string
}

// VerificationLevel is a class of Verification, from the strongest to the weakest.
type VerificationLevel int

const (
	// Unverified is the level of adapters that state none.
	Unverified VerificationLevel = iota
	// VerifiedHardware means that the adapter was tested on real hardware.
	VerifiedHardware
	// VerifiedProgram means that the adapter is tested against the vendor's own program.
	VerifiedProgram
	// VerifiedSchema means that the adapter is tested against the vendor's schema and test server.
	VerifiedSchema
	// VerifiedSimulation means that the adapter is tested against a simulation in this repository of a contract that no
	// vendor implements yet.
	VerifiedSimulation
	// VerifiedDocumentation means that the adapter follows the vendor's documentation and never met the vendor.
	VerifiedDocumentation
)

// IsReadOnly reports whether new devices of an account start out unmanaged, so that the server writes nothing to them
// until the operator allows it.
func (v Verification) IsReadOnly() bool {
	return v.Level == VerifiedDocumentation || v.Level == Unverified
}

// String describes the verification in the words of the documentation and the command line.
func (v Verification) String() string {
	with := cmp.Or(v.With, "nothing")
	switch v.Level {
	case VerifiedHardware:
		return "on real hardware: " + with
	case VerifiedProgram:
		return "against the vendor's program: " + with
	case VerifiedSchema:
		return "against the vendor's schema and test server: " + with
	case VerifiedSimulation:
		return "against a simulation: " + with
	case VerifiedDocumentation:
		return "from the vendor's documentation of " + v.Date + ", never against the vendor"
	default:
		return "not verified"
	}
}
