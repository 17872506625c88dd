package seam_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A connected workspace mirrors devices and codes, and follows them. It creates a webhook upstream, and changes nothing
// else there. Nor does the adoption of a code that is managed upstream.
func TestMirror_WritesNothing(t *testing.T) {
	t.Parallel()
	up := apptest.SharedProcess(t, apptest.WithProfiles("august"))
	at := up.Device(t, "august")
	var made api.AccessCodeResponse
	up.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": at, "name": "Owner 2", "code": "4839", "sync": true},
		&made,
	)
	upstream := newProxy(t, up.URL)
	proxied := httptest.NewServer(upstream)
	t.Cleanup(proxied.Close)

	here := apptest.Start(t, apptest.WithProfiles("august"))
	workspace, key := here.RealWorkspace(t)
	upKey, _ := up.NewKey(t, "mirror")
	admin := app.Admin{Access: here.App.Access}
	if _, err := admin.Connect(
		t.Context(),
		workspace,
		"",
		&seam.Connection{BaseURL: proxied.URL, APIKey: upKey},
	); err != nil {
		t.Fatal(err)
	}
	var device string
	apptest.Until(t, "the lock", func() bool {
		var out api.DevicesResponse
		here.PostAs(t, key, "/devices/list", map[string]any{}, &out)
		for _, d := range out.Devices {
			device = d.DeviceID
		}
		return device != ""
	})
	// codes returns the names of the unmanaged codes here, and the identifier of one.
	codes := func(name string) (names []string, id string) {
		var out api.UnmanagedAccessCodesResponse
		here.PostAs(t, key, "/access_codes/unmanaged/list", map[string]any{"device_id": device}, &out)
		for _, c := range out.AccessCodes {
			names = append(names, domain.Value(c.Name))
			if domain.Value(c.Name) == name {
				id = c.AccessCodeID
			}
		}
		slices.Sort(names)
		return names, id
	}
	mirrored := func() bool {
		want := []string{"Owner 2"}
		for _, c := range up.UnmanagedCodes(t, at) {
			want = append(want, domain.Value(c.Name))
		}
		slices.Sort(want)
		got, _ := codes("")
		return slices.Equal(got, want)
	}
	apptest.Until(t, "the codes of the upstream workspace", mirrored)
	up.Lock(t, at).Control(t, http.MethodPost, "/keypad/codes", map[string]string{"name": "Neighbor", "code": "7261"})
	apptest.Until(t, "the code of the neighbor", func() bool {
		_, id := codes("Neighbor")
		return id != "" && mirrored()
	})

	_, id := codes("Owner 2")
	want := made.AccessCode.AccessCodeID + " " + device + "/" + id
	if lines := printIdentifiers(t, here.URL, key, device); !strings.Contains(lines, want) {
		t.Errorf("the command of the guide prints %s, without %s", lines, want)
	}
	if status := here.PostAs(
		t,
		key,
		"/access_codes/unmanaged/convert_to_managed",
		map[string]any{"access_code_id": id},
		nil,
	); status != http.StatusOK {
		t.Fatalf("adopt a code: %d", status)
	}
	apptest.Until(t, "the adopted code is set", func() bool {
		var got api.AccessCodeResponse
		status := here.PostAs(t, key, "/access_codes/get", map[string]any{"access_code_id": id}, &got)
		return status == http.StatusOK && got.AccessCode.Status == "set"
	})
	if writes := upstream.writes(); !slices.Equal(writes, []string{"/webhooks/create"}) {
		t.Errorf("the mirror wrote: %v", writes)
	}
}

// printIdentifiers runs the command of the guide that prints the identifiers of codes.
func printIdentifiers(t *testing.T, endpoint, key, device string) string {
	t.Helper()
	apptest.NeedPrograms(t, "bash", "curl", "jq")
	guide, err := os.ReadFile("../../docs/connect-seam.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```shell\n(curl .*?)```").FindSubmatch(guide)
	if block == nil {
		t.Fatal("the guide has no curl command")
	}
	command := strings.ReplaceAll(string(block[1]), "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11", device)
	cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", command)
	cmd.Env = append(os.Environ(), "DEVICEACCESS_ENDPOINT="+endpoint, "DEVICEACCESS_API_KEY="+key)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}
