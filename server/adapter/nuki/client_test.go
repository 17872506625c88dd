package nuki_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki/nukitest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

// An independent client (npm nuki-web-api 2.2.1) reads the fake and unlocks the door. It writes no codes.
func TestIndependentClient(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("installs npm packages")
	}
	lab, err := gateways.Install(t.Context(), "nuki-web-api", os.DirFS("testdata/client"), 18)
	if errors.Is(err, gateways.ErrMissing) && os.Getenv("REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cloud := nukitest.Start(t, nukitest.Options{})
	code := cloud.Lock().AddCode(t, "Guest", "583926")
	cloud.Lock().EnterPIN("583926")
	cmd := lab.Command(t.Context(), filepath.Join(lab.Scripts(), "read.cjs"), cloud.URL, nukitest.Token)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Dir(lab.Module("nuki-web-api")))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the client: %v", err)
	}
	type auth struct {
		ID   string `json:"id"`
		Code int    `json:"code"`
		Type int    `json:"type"`
	}
	var got struct {
		Locks []struct {
			ID    int64 `json:"smartlockId"`
			State struct {
				State int `json:"state"`
			} `json:"state"`
		} `json:"locks"`
		Lock struct {
			ID    int64 `json:"smartlockId"`
			State struct {
				State int `json:"state"`
			} `json:"state"`
		} `json:"lock"`
		Auths  []auth `json:"auths"`
		OfLock []auth `json:"auths_of_lock"`
		Logs   []struct {
			Action  int `json:"action"`
			Trigger int `json:"trigger"`
		} `json:"logs"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := []auth{{code, 583926, 13}}
	switch id := cloud.Lock().ID; {
	case len(got.Locks) != 1 || got.Locks[0].ID != id || got.Lock.ID != id || got.Lock.State.State != 3:
		t.Errorf("the client reads the lock as %+v", got.Lock)
	case !slices.Equal(got.Auths, want) || !slices.Equal(got.OfLock, want):
		t.Errorf("the client reads %d and %d codes", len(got.Auths), len(got.OfLock))
	case len(got.Logs) != 2 || got.Logs[0].Trigger != 4 || got.Logs[1].Trigger != 255:
		t.Errorf("the client reads the log as %+v", got.Logs)
	}
}
