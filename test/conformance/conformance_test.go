package conformance_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/conformance"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

func open(t *testing.T) *conformance.Checker {
	t.Helper()
	r, err := conformance.Open(t.Context(), true)
	if errors.Is(err, gateways.ErrMissing) {
		storetest.Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestContractMatchesPublishedOne(t *testing.T) {
	t.Parallel()
	unlisted, stale := open(t).CompareContract()
	for _, what := range unlisted {
		t.Errorf("unlisted difference: %s", what)
	}
	for _, what := range stale {
		t.Errorf("differences.md lists a difference that does not exist: %s", what)
	}
}

func TestMissingPathsAreListed(t *testing.T) {
	t.Parallel()
	unlisted, stale := open(t).MissingPaths()
	for _, path := range unlisted {
		t.Errorf("%s is published, but neither in our contract nor in the table of missing paths", path)
	}
	for _, path := range stale {
		t.Errorf("the table of missing paths lists %s, which is in our contract or not published", path)
	}
}

func TestListedDifferencesAreNotStale(t *testing.T) {
	t.Parallel()
	for _, what := range open(t).StaleDifferences() {
		t.Errorf("differences.md lists a response that the published description allows: %s", what)
	}
}

func TestPublishedPropertiesAreSentOrListed(t *testing.T) {
	t.Parallel()
	unlisted, stale, err := open(t).UnsentProperties(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range unlisted {
		t.Errorf("unlisted property: %s", what)
	}
	for _, what := range stale {
		t.Errorf("differences.md lists a property that is sent or not published: %s", what)
	}
}
