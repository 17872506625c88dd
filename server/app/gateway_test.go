package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// TestMain names the tests whose outcome can differ with several servers.
func TestMain(m *testing.M) {
	apptest.Main(m, TestChangedCredentialsReachEveryInstance,
		TestMaxConns_IsNotExceeded,
		TestDump_WhileServing,
		TestRotateEncryption_WhileInstancesServe,
		TestRotateEncryption_WaitsForTransactions)
}

// Two instances are connected to one gateway. Each code is put on the lock once.
func TestTwoInstancesShareAGateway(t *testing.T) {
	t.Parallel()
	g := zigbee.Start(t, zigbee.Plain)
	lock := g.Lease(t, zigbee.Plain)
	s := apptest.Start(t, apptest.WithProfiles("august"))
	again := s.StartAnother(t)
	ctx := t.Context()
	w, err := s.App.Access.Accounts.CreateWorkspace(ctx, "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.App.Access.Auth.IssueCredential(
		ctx,
		auth.NewCredential{Kind: domain.APIKey, Name: "test", WorkspaceIDs: []uuid.UUID{w.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	user, password := g.User(t)
	config, err := json.Marshal(
		zigbee2mqtt.Config{
			Broker:   g.Broker,
			Topic:    zigbee.Topic,
			Username: user,
			Password: password,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	account, err := s.App.Access.Accounts.ConnectAccount(
		ctx,
		account.NewAccount{
			WorkspaceID: w.ID,
			Adapter:     "zigbee2mqtt",
			DisplayName: "Locks",
			Address:     g.Broker,
			Config:      config,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	apptest.Until(t, "the lock appears", func() bool {
		s.PostAs(t, key, "/devices/list", map[string]any{}, &devices)
		return len(devices.Devices) == 1
	})
	apptest.Until(t, "both are connected", func() bool {
		if err := again.App.Access.Accounts.Hint(ctx, account, ""); err != nil {
			t.Fatal(err)
		}
		return g.Connections(t, user) == 2
	})
	want := map[string]int{}
	for n := range 6 {
		pin := fmt.Sprintf("6021%04d", 6000+n)
		want[pin] = 1
		instance := []*apptest.Server{s, again}[n%2]
		if status := instance.PostAs(
			t,
			key,
			"/access_codes/create",
			map[string]any{"device_id": devices.Devices[0].ID, "code": pin},
			nil,
		); status != http.StatusOK {
			t.Fatalf("create a code: %d", status)
		}
	}
	apptest.Until(t, "each code is on the lock", func() bool {
		found := map[string]int{}
		for _, pin := range lock.State(t).Codes {
			found[pin]++
		}
		for pin := range want {
			if found[pin] > 1 {
				t.Fatal("a code is on the lock twice")
			}
			if found[pin] == 0 {
				return false
			}
		}
		return true
	})
	checkGateway(t, s)
	if err := again.App.Access.Accounts.DisconnectAccount(ctx, account); err != nil {
		t.Fatal(err)
	}
	s.PostAs(t, key, "/devices/list", map[string]any{}, &devices)
	if len(devices.Devices) != 0 {
		t.Error("the lock still exists")
	}
	for pin := range want {
		found := false
		for _, on := range lock.State(t).Codes {
			found = found || on == pin
		}
		if !found {
			t.Error("disconnecting has taken a code off the lock")
		}
	}
}

// checkGateway checks the account of a gateway with one lock while instances use it.
func checkGateway(t *testing.T, s *apptest.Server) {
	t.Helper()
	admin := app.Admin{Access: s.App.Access}
	all, err := admin.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a app.ConnectedAccount) bool { return a.Adapter == "zigbee2mqtt" })
	lines := map[string]app.CheckLine{}
	report := func(l app.CheckLine) {
		subject, _, _ := strings.Cut(l.Subject, " ")
		lines[subject] = l
	}
	if err := admin.Check(t.Context(), all[i], app.CheckOptions{Devices: 1, Report: report}); err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{
		"login":        "the vendor answers at mqtt",
		"devices":      "1, 1 online",
		"capabilities": "lock, unlock, online codes",
		"codes":        "",
		"pushes":       "over the connection to the gateway",
		"tested":       "against the vendor's program",
	} {
		if l := lines[subject]; l.Status != app.CheckOK || !strings.Contains(l.Result, want) {
			t.Errorf("%s: %+v, want %q", subject, l, want)
		}
	}
}
