package api_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

func TestContractIsVersionOne(t *testing.T) {
	t.Parallel()
	if !strings.Contains(string(api.OpenAPI), "\n  version: 1.0.0\n") {
		t.Error("the embedded contract does not carry info.version 1.0.0")
	}
}

// The Terraform provider links this package: what only the server needs must stay out of it.
func TestClientLinksNeitherRouterNorValidator(t *testing.T) {
	t.Parallel()
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("list dependencies: %v", err)
	}
	for dep := range strings.Lines(string(deps)) {
		for _, unwanted := range []string{"go-chi/chi", "getkin/kin-openapi", "deviceaccess/server"} {
			if strings.Contains(dep, unwanted) {
				t.Errorf("package api links %s", strings.TrimSpace(dep))
			}
		}
	}
}
