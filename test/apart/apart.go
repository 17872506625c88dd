// Package apart keeps what tests and the demo start apart from the server that the caller's shell is set up for.
package apart

import (
	"os"
	"strings"
)

// Unset forgets the settings of a server that are in the environment, so that neither this process nor one that it starts joins
// the database that they name. What tests tell themselves there (DEVICEACCESS_TEST_…) stays.
func Unset() {
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "DEVICEACCESS_") && !strings.HasPrefix(name, "DEVICEACCESS_TEST_") {
			os.Unsetenv(name) //nolint:errcheck // it is a name
		}
	}
}
