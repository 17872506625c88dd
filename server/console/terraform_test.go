package console_test

import (
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/tfcore"
)

// blocks returns the texts that a page offers to copy.
func (a answer) blocks() string {
	var all []string
	for _, part := range strings.Split(a.body, `<pre class="code-block"`)[1:] {
		_, part, _ = strings.Cut(part, ">")
		part, _, _ = strings.Cut(part, "</pre>")
		all = append(all, html.UnescapeString(part))
	}
	return strings.Join(all, "\n")
}

// The blocks that pages offer to copy import codes, and change nothing but that.
func TestTerraform_PlanOfCopiedBlocksIsEmpty(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august")
	lock := b.Device(t, "august")
	apptest.Until(t, "the codes are read", func() bool { return len(b.UnmanagedCodes(t, lock)) == 3 })
	always := b.newCode(t, map[string]any{"device_id": lock, "code": pin, "name": "Gardener"})
	timed := b.newCode(t, map[string]any{
		"device_id": lock,
		"code":      pin[1:],
		"name":      `A "guest" of ${June}`,
		"starts_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		"ends_at":   time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339),
	})
	config := `provider "deviceaccess" {
  endpoint = "` + b.URL + `"
  api_key  = "` + b.APIKey + `"
}
`
	for id, digits := range map[string]string{always: pin, timed: pin[1:]} {
		page := b.open(t, domain.RoleViewer, "/codes/"+id)
		page.shows(t, http.StatusOK)
		// The test's core knows no sensitive variables.
		blocks := strings.ReplaceAll(
			page.blocks(),
			"  type      = string\n  sensitive = true\n",
			`  default = "`+digits+"\"\n",
		)
		if strings.Contains(page.body, digits) || blocks == page.blocks() {
			t.Fatalf("the page offers %s", page.blocks())
		}
		core := tfcore.New(t, "deviceaccess", provider.NewServer("test"))
		plan, diags := core.Plan(config+blocks, tfcore.Options{})
		if diags.HasErrors() || !plan.IsEmpty() {
			t.Errorf("the plan of\n%s\nis empty: %t; %v", blocks, plan.IsEmpty(), diags)
		}
	}

	unmanaged := b.UnmanagedCodes(t, lock)[0].AccessCodeID
	page := b.open(t, domain.RoleViewer, "/locks/"+lock+"/unmanaged/import?code="+unmanaged)
	core := tfcore.New(t, "deviceaccess", provider.NewServer("test"))
	plan, diags := core.Plan(config+page.blocks(), tfcore.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diags := core.Apply(config+page.blocks(), plan); diags.HasErrors() {
		t.Fatal(diags)
	}
	if left := b.UnmanagedCodes(t, lock); len(left) != 2 {
		t.Errorf("%d unmanaged codes after the apply", len(left))
	}
}
