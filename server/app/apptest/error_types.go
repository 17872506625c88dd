package apptest

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

var errorTypes = sync.OnceValues(func() (types []string, err error) {
	doc, err := rest.Document()
	if err != nil {
		return nil, err
	}
	listed, _ := doc.Components.Schemas["Error"].Value.Properties["type"].Value.Extensions["x-extensible-enum"].([]any)
	for _, kind := range listed {
		types = append(types, kind.(string))
	}
	return types, nil
})

// ErrorTypes returns the error types of the API contract.
func ErrorTypes(t testing.TB) []string {
	t.Helper()
	types, err := errorTypes()
	if err != nil {
		t.Fatalf("read the contract: %v", err)
	}
	return types
}

// checkErrorType records an error response whose type is not in the API contract.
func (s *Server) checkErrorType(path string, body []byte) {
	var refusal struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &refusal) != nil || refusal.Error.Type == "" {
		return // a page, or a response to a vendor
	}
	if types, err := errorTypes(); err != nil || !slices.Contains(types, refusal.Error.Type) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.complaints == nil { // a benchmark
			return
		}
		s.complaints[path+" answers with the error "+refusal.Error.Type+", which the contract does not name (Error.type "+
			"in api/openapi.yaml)"] = true
	}
}
