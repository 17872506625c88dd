package api

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// An operation that accepts a key takes effect on each call without one. The client sends a key with it, or the
// operation is harmless to repeat.
func TestKeyedOperationsOfTheClientCanBeRepeated(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("gen/client.yaml")
	if err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`(?m)^  - (\w+)$`).FindAllStringSubmatch(string(config), -1)
	keyed := regexp.MustCompile(`(?m)^  (/\S+):\n    post:\n      operationId: (\w+)\n      x-idempotency-key: true$`)
	tested := 0
	for _, found := range keyed.FindAllStringSubmatch(string(OpenAPI), -1) {
		path, operation := found[1], found[2]
		if !slices.ContainsFunc(called, func(one []string) bool { return one[1] == operation }) {
			continue
		}
		tested++
		if !isCreation(path) && !isRepeatable(path) {
			t.Errorf("%s accepts a key, and the client sends none", path)
		}
	}
	if tested < 8 {
		t.Errorf("%d operations of the client accept a key", tested)
	}
}
