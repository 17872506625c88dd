package console_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// TestMain names no test: the outcome of none depends on the number of servers.
func TestMain(m *testing.M) { apptest.Main(m) }
