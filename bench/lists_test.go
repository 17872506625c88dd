package main

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// unmeasured are lists whose rows cannot be copied, and those that are always empty. The token of a session is encrypted
// for its row. TestClientSessionsAreFoundInIndexes checks the plan.
var unmeasured = []string{"/client_sessions/list", "/user_identities/unmanaged/list"}

func TestEveryPaginatedListIsMeasured(t *testing.T) {
	t.Parallel()
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	measured := (&listBed{}).lists()
	for path, item := range doc.Paths.Map() {
		schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
		if schema.Properties["page_cursor"] != nil && !slices.Contains(unmeasured, path) &&
			!slices.ContainsFunc(measured, func(l list) bool {
				return l.path == path
			}) {
			t.Errorf("the pages of %s are not measured", path)
		}
	}
}
