package app

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// accountForms implements console.Accounts with what the command `accounts` and the connect pages use.
type accountForms struct {
	admin     *Admin
	simulated []adapter.Vendor
}

// AccountForms returns what the console needs to connect accounts.
func (a *App) AccountForms() console.Accounts {
	return &accountForms{
		admin:     &Admin{Access: a.Access, Connecting: a.config.Connecting},
		simulated: simulatedVendors(nil, ""),
	}
}

// WebhookTester returns what the console needs to send test events.
func (a *App) WebhookTester() console.WebhookTester { return a.delivery.deliverer }

// Kinds implements console.Accounts.
func (f *accountForms) Kinds() (out []console.AccountKind) {
	for _, v := range f.admin.Connecting.Registered() {
		usage := v.Usage
		if usage != "" {
			usage = sentence(usage)
		}
		kind := console.AccountKind{
			Adapter:      v.Adapter,
			DisplayName:  v.DisplayName,
			Usage:        usage,
			Verification: v.Verification.String(),
			ReadOnly:     startsReadOnly(v),
			LacksClient:  f.admin.Connecting.lacksClient(v),
		}
		if v.CallsPerHour > 0 {
			kind.Budget = bucketOf(v)
		}
		for _, s := range v.Settings {
			kind.Settings = append(kind.Settings, formSetting(s))
		}
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b console.AccountKind) int { return strings.Compare(a.DisplayName, b.DisplayName) })
	return out
}

// Brands implements console.Accounts.
func (f *accountForms) Brands(in account.Workspace) (out []console.Brand) {
	for _, v := range f.admin.Connecting.offered(in, f.simulated) {
		out = append(out, console.Brand{Name: v.Name, DisplayName: v.DisplayName})
	}
	return out
}

// inFile is the part of a Setting.Usage that names a file.
var inFile = regexp.MustCompile("(in|from) `FILE`")

// formSetting turns a setting of the command line into a field of a form.
func formSetting(s adapter.Setting) console.AccountSetting {
	out := console.AccountSetting{
		Name:     s.Name,
		Label:    labelOf(s.Name),
		Required: s.Required,
		Default:  s.Default,
		Secret:   s.Kind == adapter.SecretSetting,
		IsFile:   s.Kind == adapter.FileSetting,
	}
	help := s.Usage
	switch s.Kind {
	case adapter.FileSetting:
		help, _, _ = strings.Cut(inFile.ReplaceAllString(help, "$1 this field"), ";")
	case adapter.SecretSetting:
		if strings.EqualFold(help, out.Label) {
			return out
		}
		help = "the " + help
	case adapter.TextSetting:
	}
	out.Help = sentence(strings.ReplaceAll(help, "`", ""))
	return out
}

// labelOf turns the name of a setting into the label of a field.
func labelOf(name string) string {
	switch name {
	case "url":
		return "URL"
	case "ca":
		return "CA certificate"
	}
	label := strings.ReplaceAll(name, "-", " ")
	if rest, ok := strings.CutPrefix(label, "api "); ok {
		return "API " + rest
	}
	return strings.ToUpper(label[:1]) + label[1:]
}

// Connect implements console.Accounts.
func (f *accountForms) Connect(ctx context.Context, n console.NewAccount) (uuid.UUID, error) {
	v, err := f.vendor(n.Adapter)
	if err != nil {
		return uuid.Nil, err
	}
	set := adapter.Settings{}
	for _, s := range v.Settings {
		if value := cmp.Or(n.Settings[s.Name], s.Default); value != "" {
			set[s.Name] = value
		} else if s.Required {
			return uuid.Nil, domain.Invalidf(s.Name, "Fill in the field %s.", labelOf(s.Name))
		}
	}
	to := v.New()
	if err := to.Apply(set); err != nil {
		return uuid.Nil, formError(v, err)
	}
	admin := *f.admin
	admin.AllowWrites = n.AllowWrites
	checking, cancel := context.WithTimeout(ctx, formTimeout)
	defer cancel()
	id, err := admin.Connect(checking, n.Workspace, n.Name, to)
	return id, formError(v, err)
}

// formTimeout limits the check of a connection before it is stored.
const formTimeout = 30 * time.Second

// Update implements console.Accounts.
func (f *accountForms) Update(ctx context.Context, id uuid.UUID, settings map[string]string) error {
	one, err := f.admin.Access.Accounts.GetAccount(ctx, id)
	if err != nil {
		return err
	}
	if one.Deleted {
		return domain.AccountNotFound("connected_account_id", id.String())
	}
	v, err := f.vendor(one.Adapter)
	if err != nil {
		return err
	}
	set := adapter.Settings{}
	for _, s := range v.Settings {
		if value := settings[s.Name]; value != "" {
			set[s.Name] = value
		}
	}
	if len(set) == 0 {
		return domain.Invalidf("", "Fill in at least one field. Empty fields stay unchanged.")
	}
	to, err := readConnection(v, one)
	if err != nil {
		return err
	}
	if err := to.Apply(set); err != nil {
		return formError(v, err)
	}
	checking, cancel := context.WithTimeout(ctx, formTimeout)
	defer cancel()
	return formError(v, f.admin.Reconnect(checking, id, one.DisplayName, to))
}

// vendor returns a vendor that commands can connect, too.
func (f *accountForms) vendor(name string) (adapter.Vendor, error) {
	v, ok := f.admin.Connecting.vendorOf(name)
	if !ok || v.Usage == "" {
		return v, domain.Invalidf(
			"adapter",
			"Accounts of this kind cannot be connected with a form. Send a connect link.",
		)
	}
	if f.admin.Connecting.lacksClient(v) {
		return v, domain.Invalidf(
			"adapter",
			"%s needs your registration at the vendor. Start the server with --vendor-client %s=ID.",
			v.DisplayName,
			v.Adapter,
		)
	}
	return v, nil
}

// formError turns an error of an adapter into one for the operator. Fields of the form replace flags of the command
// line.
func formError(v adapter.Vendor, err error) error {
	if err == nil {
		return nil
	}
	if _, known := domain.AsError(err); known {
		return err
	}
	message := ""
	if e := adapter.AsError(err); e != nil {
		message = e.Message
	} else if refused, ok := errors.AsType[*login.Refusal](err); ok {
		message = refused.Message
	} else if _, ok := errors.AsType[*login.Step](err); ok {
		message = "the vendor asks the owner of the account for a code; send a connect link to the owner"
	} else if errors.Is(err, context.DeadlineExceeded) {
		message = "it does not respond; check the address, and whether this server can reach it"
	} else {
		message = err.Error() // of Apply, which quotes no secret
	}
	for _, s := range v.Settings {
		flag := "--" + s.Name
		if s.Kind == adapter.SecretSetting {
			variable := "DEVICEACCESS_GATEWAY_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
			message = strings.ReplaceAll(message, " or "+variable, "")
			flag += "-file"
		}
		message = strings.ReplaceAll(message, "set "+flag, "fill in “"+labelOf(s.Name)+"”")
		message = strings.ReplaceAll(message, flag, labelOf(s.Name))
	}
	return &domain.Error{
		Kind:    domain.Invalid,
		Type:    "account_not_connected",
		Message: "Nothing was stored: " + strings.TrimSuffix(message, ".") + ".",
	}
}
