package rest_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Whatever can be simulated is listed among the vendors, under the name that its devices have.
func TestEverySimulatedVendorIsKnown(t *testing.T) {
	t.Parallel()
	for _, name := range append(sandbox.Profiles(), sandbox.Everything, sandbox.AccessSystems) {
		if display, categories := rest.Provider(name); display == name && name != "igloohome" || !slices.Contains(categories, "stable") {
			t.Errorf("%s is called %q, and of the kinds %v", name, display, categories)
		}
	}
}
