package provider

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// The fullest log of Terraform and of the server, and what the database keeps, tell no secret of it.
func TestDemoPlaysFromImportToDestroy(t *testing.T) {
	t.Parallel()
	const guestPIN = "246813"
	var run secretscan.Run
	srv := apptest.Start(t, apptest.WithProfiles("august"), run.Configure(t))
	device := srv.Device(t, "august")
	codes := srv.UnmanagedCodes(t, device)
	files := map[string]string{
		"terraform.tfvars": fmt.Sprintf(
			"front_door = %q\ncleaner_code_id = %q\nguest_pin = %q\n",
			device,
			codes[0].AccessCodeID,
			guestPIN,
		),
	}
	for _, name := range []string{"variables.tf", "main.tf", "outputs.tf"} {
		content, err := os.ReadFile(filepath.Join("../examples/demo", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = strings.Replace(string(content), "provider \"deviceaccess\" {}", onServer(srv, ""), 1)
	}
	w := newWorkspace(t, files)
	w.expect(true, "import", "deviceaccess_access_code.neighbour", codes[1].AccessCodeID)
	expectConversions(t, srv, "after the import", 1)
	w.expect(true, "plan", "-out=plan")
	expectConversions(t, srv, "after the plan", 1)
	w.expect(true, "apply", "plan")
	expectConversions(t, srv, "after the apply", 2)
	w.expect(true, "plan", "-detailed-exitcode") // which fails when there is anything to change
	w.expect(true, "output", "-json")
	w.expect(true, "destroy", "-auto-approve")

	lock := srv.Lock(t, device)
	for pin, want := range map[string]bool{guestPIN: false, *codes[0].Code: false, *codes[1].Code: false, *codes[2].Code: true} {
		if lock.Has(t, pin) != want {
			t.Errorf("after the destroy the lock opens for %s: %v", pin, !want)
		}
	}
	if run.Count("code") < 4 || run.Count("secret") == 0 || run.Count("credential") == 0 {
		t.Errorf(
			"%d codes, %d secrets and %d credentials were seen",
			run.Count("code"),
			run.Count("secret"),
			run.Count("credential"),
		)
	}
	const late = "864209"
	run.Learn("code", late)
	run.AddCheck(t, "access_codes", "name <> 'Unforeseen'")
	if status := srv.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "name": "Unforeseen", "code": late},
		nil,
	); status != http.StatusInternalServerError {
		t.Errorf("what the database refuses is answered %d", status)
	}
	run.Check(t, srv.App, map[string][]byte{"what Terraform writes": w.seen.Bytes()})
}

func TestGuideAdoptsManyCodes(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	guide, err := os.ReadFile("../templates/guides/adopt-existing-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	list := ""
	for _, block := range strings.Split(string(guide), "```terraform\n")[1:] {
		if code, _, _ := strings.Cut(block, "```"); strings.Contains(code, "import_blocks") {
			list = strings.ReplaceAll(code, "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11", device)
		}
	}
	w := newWorkspace(t, map[string]string{"required.tf": required, "provider.tf": onServer(srv, ""), "list.tf": list})
	w.expect(true, "apply", "-auto-approve")
	imports := w.read("output", "-raw", "import_blocks")
	if err := os.Remove(filepath.Join(w.dir, "list.tf")); err != nil {
		t.Fatal(err)
	}
	w.write("imports.tf", imports)
	w.expect(true, "plan", "-generate-config-out=adopted.tf")
	expectConversions(t, srv, "after the plan", 0)
	w.expect(true, "apply", "-auto-approve")
	expectConversions(t, srv, "after the apply", 3)
	w.expect(true, "plan", "-detailed-exitcode")
	if left := srv.UnmanagedCodes(t, device); len(left) != 0 {
		t.Errorf("%d codes are left unmanaged", len(left))
	}
}
