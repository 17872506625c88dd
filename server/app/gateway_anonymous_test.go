package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// A broker may accept clients without a user but reject wrong passwords. A login without a password then proves
// nothing, and gets no access to an account that the operator connected with a password.
func TestGateway_AnonymousLoginProvesNothing(t *testing.T) {
	t.Parallel()
	broker := zigbee.OpenBroker(t, "operator", "right-secret")
	announce(t, broker, "zigbee2mqtt", "operator", "right-secret", "0x00124b0014d9a1f0")
	b := newStrangers(t)
	c := &zigbee2mqtt.Connection{
		Config: zigbee2mqtt.Config{
			Broker:   "mqtt://" + broker,
			Topic:    "zigbee2mqtt",
			Username: "operator",
			Password: "right-secret",
		},
	}
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	account, err := b.s.App.Access.Accounts.ConnectAccount(
		t.Context(),
		account.NewAccount{
			WorkspaceID: b.workspace,
			Adapter:     "zigbee2mqtt",
			DisplayName: "The house",
			Address:     c.Address(),
			Config:      config,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		entered        string
		user, password string
		want           int
	}{
		{"nothing", "", "", http.StatusConflict},
		{"a password without a user", "", "guess", http.StatusConflict},
		{"a wrong password", "operator", "guess", http.StatusUnprocessableEntity},
	} {
		form := url.Values{
			"broker":   {"mqtt://" + broker},
			"topic":    {"zigbee2mqtt"},
			"username": {one.user},
			"password": {one.password},
		}
		if status := b.logIn("zigbee2mqtt", form); status != one.want {
			t.Errorf("%s: %d, want %d", one.entered, status, one.want)
		}
		if got := b.reached(); len(got) > 0 {
			t.Fatalf("%s: Mallory reaches %v", one.entered, got)
		}
		if !strings.Contains(b.kept(account), "right-secret") {
			t.Fatalf("%s: the operator's account is reached otherwise", one.entered)
		}
	}
	// A login with the password gets the account.
	form := url.Values{
		"broker":   {"mqtt://" + broker},
		"topic":    {"zigbee2mqtt"},
		"username": {"operator"},
		"password": {"right-secret"},
	}
	if status := b.logIn("zigbee2mqtt", form); status != http.StatusSeeOther {
		t.Errorf("the right password: %d", status)
	}
	if got := b.reached(); len(got) != 1 || got[0] != account.String() {
		t.Errorf("with the right password %v is reached, want %s", got, account)
	}
}
