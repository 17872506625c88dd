package spec_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Each gateway that was reached is one network, however many accounts reach it.
func TestNetworks_OneForEachGateway(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	list := func() []api.Network {
		var out api.NetworksResponse
		if status := s.Post(t, "/networks/list", params{}, &out); status != http.StatusOK || out.Networks == nil {
			t.Fatalf("status %d, %v", status, out)
		}
		return out.Networks
	}
	if networks := list(); len(networks) != 0 {
		t.Errorf("simulated accounts have %d networks", len(networks))
	}
	reach := func(gateway string) (acct string) {
		acct, _ = s.Connect(t, "august")
		if err := s.App.Access.Accounts.RecordGateway(t.Context(), uuid.MustParse(acct), gateway, false); err != nil {
			t.Fatal(err)
		}
		return acct
	}
	first := reach("home " + s.WorkspaceID)
	reach("home " + s.WorkspaceID)
	other := reach("another home " + s.WorkspaceID)
	networks := list()
	if len(networks) != 2 || networks[0].NetworkID != first || networks[1].NetworkID != other ||
		networks[0].WorkspaceID != s.WorkspaceID || networks[0].DisplayName == "" || networks[0].CreatedAt.IsZero() {
		t.Fatalf("networks %+v", networks)
	}
	var one api.NetworkResponse
	if status := s.Post(t, "/networks/get", params{"network_id": other}, &one); status != http.StatusOK ||
		one.Network != networks[1] {
		t.Errorf("status %d, %+v", status, one.Network)
	}
	if got := refused(
		t,
		s,
		s.APIKey,
		"/networks/get",
		params{"network_id": uuid.NewString()},
	); got != "404 network_not_found" {
		t.Errorf("an unknown network: %s", got)
	}
	s.Post(t, "/connected_accounts/delete", params{"connected_account_id": other}, nil)
	if networks := list(); len(networks) != 1 {
		t.Errorf("%d networks after a gateway was disconnected", len(networks))
	}
	token := session(t, s, params{"user_identifier_key": "jane"}).Token
	if got := refused(t, s, token, "/networks/list", params{}); got != "403 forbidden" {
		t.Errorf("a client session: %s", got)
	}
}
