package apptest

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// Connect connects another simulated account with one device of a profile, and returns once the server lists the device.
func (s *Server) Connect(t testing.TB, profile string) (acct, device string) {
	t.Helper()
	id, err := s.App.Access.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID:  uuid.MustParse(s.WorkspaceID),
		Adapter:      account.SandboxAdapter,
		DisplayName:  "Further devices",
		Capabilities: app.SimulatedKinds,
		Config:       []byte(`{"key":"` + uuid.NewString() + `","profiles":["` + profile + `"],"locks_per_profile":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	Until(t, "the lock of another account", func() bool {
		var out struct {
			Devices []struct {
				ID string `json:"device_id"`
			} `json:"devices"`
		}
		if status := s.Post(
			t,
			"/devices/list",
			map[string]any{"connected_account_id": id.String()},
			&out,
		); status != http.StatusOK {
			t.Fatalf("list the devices: %d", status)
		}
		for _, d := range out.Devices {
			device = d.ID
		}
		return device != ""
	})
	return id.String(), device
}
