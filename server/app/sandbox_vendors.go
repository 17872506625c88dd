package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// simulatedVendors returns the vendors of sandbox workspaces. url is the server's. Without a Sandbox, they can be listed
// only.
func simulatedVendors(s *Sandbox, url string) (out []adapter.Vendor) {
	add := func(adapterName, accepts string, names ...string) {
		for _, name := range names {
			out = append(out, simulatedVendor(s, url, adapterName, accepts, name))
		}
	}
	add(account.SandboxAdapter, adapter.Locks, append(sandbox.Profiles(), sandbox.Everything)...)
	add(account.SandboxAdapter, adapter.Thermostats, sandbox.ThermostatProfiles()...)
	add(account.SandboxAdapter, adapter.NoiseSensors, sandbox.NoiseProfiles()...)
	add(account.SandboxAccessAdapter, adapter.AccessControl, sandbox.AccessSystems)
	return out
}

func simulatedVendor(s *Sandbox, url, adapterName, accepts, name string) adapter.Vendor {
	display, categories := rest.Provider(name)
	blank := func() *simulatedConnection {
		return &simulatedConnection{
			sandbox: s,
			url:     url,
			adapter: adapterName,
			vendor:  name,
			display: display,
		}
	}
	return adapter.Vendor{
		Adapter:     adapterName,
		Name:        name,
		DisplayName: display,
		Simulated:   true,
		Categories:  categories,
		Accepts:     []string{accepts},
		New:         func() adapter.Connection { return blank() },
		Login: &adapter.Login{
			Fields: []login.Field{
				{
					Name:         "email",
					Label:        "Email address",
					Prompt:       "Enter your email address.",
					Kind:         "email",
					Autocomplete: "username",
				},
				{
					Name:         "password",
					Label:        "Password",
					Prompt:       "Enter your password.",
					Kind:         "password",
					Autocomplete: "current-password",
				},
			},
			Sample: login.Sample{
				Text:   "Log in with the email address %s and the password %s.",
				Values: []string{sandbox.People[0], sandbox.Password},
			},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				c := blank()
				c.email, c.password, c.code = entered["email"], entered["password"], entered["code"]
				return c, nil
			},
			SecretField: "password",
		},
	}
}

// simulatedConnection connects to the simulated cloud over HTTP, like to a vendor's cloud.
type simulatedConnection struct {
	sandboxConfig

	sandbox         *Sandbox
	url             string // of this server
	adapter         string
	vendor, display string
	email, password string // of a login
	code            string // of its second step
}

// Adapter implements adapter.Connection.
func (c *simulatedConnection) Adapter() string { return c.adapter }

// Address implements adapter.Connection.
func (c *simulatedConnection) Address() string { return c.Key }

// Apply implements adapter.Connection.
func (c *simulatedConnection) Apply(adapter.Settings) error {
	return errors.New("a simulated account has no settings")
}

// simulatedLogin is the response of the simulated cloud to a login.
type simulatedLogin struct {
	Account string `json:"account"`
	Email   string `json:"email"`
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

var simulatedHTTP = &http.Client{Timeout: 10 * time.Second}

// Check implements adapter.Connection: it logs in.
func (c *simulatedConnection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	body, err := json.Marshal(map[string]string{
		"partner":  env.Workspace,
		"provider": c.vendor,
		"email":    c.email,
		"password": c.password,
		"code":     c.code,
	})
	if err != nil {
		return found, fmt.Errorf("encode the login: %w", err)
	}
	at := c.sandbox.cloudURL(c.url) + "/login"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return found, fmt.Errorf("ask the simulated cloud: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.sandbox.tokens.Partner(env.Workspace))
	res, err := simulatedHTTP.Do(req)
	if err != nil {
		return found, fmt.Errorf("ask the simulated cloud: %w", err)
	}
	defer res.Body.Close()
	var out simulatedLogin
	err = json.NewDecoder(res.Body).Decode(&out)
	switch {
	case err != nil:
		return found, fmt.Errorf("read the response of the simulated cloud: %w", err)
	case out.Code == "LOGIN_REFUSED":
		return found, &login.Refusal{Field: "password", Message: "The email address or the password is wrong."}
	case out.Code == "SECOND_FACTOR_REFUSED":
		return found, &login.Refusal{Field: "code", Message: "The code is wrong."}
	case out.Code == "SECOND_FACTOR_REQUIRED":
		return found, c.secondFactor()
	case res.StatusCode != http.StatusOK:
		return found, fmt.Errorf("the simulated cloud answers %s: %s", res.Status, out.Message)
	}
	found.Email, found.DisplayName = out.Email, c.display+" of "+domain.CleanName(out.Email)
	c.sandboxConfig = sandboxConfig{Key: out.Account}
	switch c.vendor {
	case sandbox.AccessSystems:
	case sandbox.Everything:
		c.Profiles, c.LocksPerProfile = c.sandbox.opt.Profiles, c.sandbox.opt.LocksPerProfile
	default:
		found.Provider, c.Profiles = c.vendor, []string{c.vendor}
	}
	return found, nil
}

// secondFactor returns the step in which a person enters the code.
func (c *simulatedConnection) secondFactor() *login.Step {
	return &login.Step{
		Message: "Enter the code that %s sent to your phone or email address.",
		Args:    []any{c.display},
		Fields: []login.Field{{
			Name:         "code",
			Label:        "Verification code",
			Prompt:       "Enter the verification code.",
			Kind:         "text",
			Autocomplete: "one-time-code",
		}},
		Sample: login.Sample{Text: "Enter the code %s.", Values: []string{sandbox.SecondFactor}},
	}
}

// Open implements adapter.DeviceConnection.
func (c *simulatedConnection) Open(ctx context.Context, env adapter.Env) (adapter.Adapter, error) {
	token, err := c.sandbox.token(ctx, env.Account, c.adapter, c.sandboxConfig)
	if err != nil {
		return nil, err
	}
	return devicecloud.Connection{BaseURL: c.sandbox.cloudURL(c.url), Token: token}.Open(ctx, env)
}

// OpenSystems implements adapter.SystemConnection.
func (c *simulatedConnection) OpenSystems(ctx context.Context, env adapter.Env) (adapter.AccessSystems, error) {
	token, err := c.sandbox.token(ctx, env.Account, c.adapter, c.sandboxConfig)
	if err != nil {
		return nil, err
	}
	return accesscloud.Connection{BaseURL: c.sandbox.cloudURL(c.url), Token: token}.OpenSystems(ctx, env)
}
