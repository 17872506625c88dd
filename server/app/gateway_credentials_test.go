package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// Credentials of a gateway that are changed through one instance reach the other instance, too. Both drop the old
// credentials and continue with the new ones.
func TestChangedCredentialsReachEveryInstance(t *testing.T) {
	t.Parallel()
	g := zigbee.Start(t, zigbee.Plain)
	lock := g.Lease(t, zigbee.Plain)
	s := apptest.Start(t, apptest.WithProfiles("august"))
	instances := []*apptest.Server{s, s.StartAnother(t)}
	admin := app.Admin{Access: s.App.Access}
	before, oldPassword := g.User(t)
	after, newPassword := g.User(t)
	connection := &zigbee2mqtt.Connection{
		Config: zigbee2mqtt.Config{
			Broker:   g.Broker,
			Topic:    zigbee.Topic,
			Username: before,
			Password: oldPassword,
		},
	}
	account, err := admin.Connect(t.Context(), uuid.MustParse(s.WorkspaceID), "Home", connection)
	if err != nil {
		t.Fatal(err)
	}
	var device string
	apptest.Until(t, "the lock appears", func() bool {
		var list struct {
			Devices []struct {
				ID   string `json:"device_id"`
				Type string `json:"device_type"`
			} `json:"devices"`
		}
		s.Post(t, "/devices/list", map[string]any{}, &list)
		for _, d := range list.Devices {
			if d.Type == "zigbee_lock" {
				device = d.ID
			}
		}
		return device != ""
	})
	pins := 0
	each := func(when string) { // creates a code through every instance
		t.Helper()
		for i, instance := range instances {
			pin := fmt.Sprintf("6021%04d", 6000+pins)
			pins++
			if status := instance.Post(
				t,
				"/access_codes/create",
				map[string]any{"device_id": device, "code": pin},
				nil,
			); status != http.StatusOK {
				t.Fatalf("%s: create a code at instance %d: %d", when, i, status)
			}
			apptest.Until(t, when+" the code is on the lock", func() bool {
				n := 0
				for _, on := range lock.State(t).Codes {
					if on == pin {
						n++
					}
				}
				if n > 1 {
					t.Fatalf("%s a code is %d times on the lock", when, n)
				}
				return n == 1
			})
		}
	}
	each("before")
	for _, instance := range instances { // chance decides which one works on the account
		if err := instance.App.OpenAdapter(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Until(t, "both instances are connected", func() bool {
		return g.Connections(t, before) == len(instances)
	})
	connection.Username, connection.Password = after, newPassword
	if err := admin.Reconnect(t.Context(), account, "Home", connection); err != nil {
		t.Fatal(err)
	}
	apptest.Until(t, "no instance uses the old ones", func() bool { return g.Connections(t, before) == 0 })
	g.RemoveUser(t, before)
	each("after")
	if n := g.Connections(t, before); n != 0 {
		t.Errorf("%d connections have the old credentials again", n)
	}
	if n := g.Connections(t, after); n == 0 {
		t.Error("no instance is connected with the new credentials")
	}
	accounts, err := admin.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range accounts {
		if a.ID == account && a.Problem != "" {
			t.Errorf("the account says %s", a.Problem)
		}
	}
}
