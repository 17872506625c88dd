// Package conformance checks our API against the published OpenAPI description of the API we are compatible with, in
// npm's @seamapi/types. It checks our contract and the server's responses. differences.md lists all intended
// differences with reasons. No other difference is allowed, and each row must be a real difference.
package conformance

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

//go:embed package.json package-lock.json extract.cjs differences.md
var files embed.FS

// Checker has both descriptions. It is safe for concurrent use.
type Checker struct {
	published, ours *openapi3.T
	differences     []Difference

	seed maphash.Seed
	mu   sync.Mutex
	seen map[uint64]bool // responses that were valid
}

// Open reads the descriptions. If fetch is set, it fetches the published one when necessary. Otherwise it returns
// gateways.ErrMissing if it is missing.
func Open(ctx context.Context, fetch bool) (*Checker, error) {
	at, err := document(ctx, fetch)
	if err != nil {
		return nil, err
	}
	r := &Checker{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
	if r.published, err = openapi3.NewLoader().LoadFromFile(at); err != nil {
		return nil, fmt.Errorf("read the published description: %w", err)
	}
	if r.ours, err = rest.Document(); err != nil {
		return nil, err
	}
	text, err := files.ReadFile("differences.md")
	if err != nil {
		return nil, err
	}
	if r.differences, err = parseDifferences(string(text)); err != nil {
		return nil, fmt.Errorf("read differences.md: %w", err)
	}
	return r, nil
}

// document returns the file of the published description, which one process extracts from the package.
func document(ctx context.Context, fetch bool) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the published description: %w", err)
	}
	version, err := gateways.Hash(files, "package-lock.json", "extract.cjs")
	if err != nil {
		return "", err
	}
	place := filepath.Join(user, "deviceaccess", "labs", "published-"+version)
	at := filepath.Join(place, "openapi.json")
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	if !fetch {
		return "", fmt.Errorf("%w: the published description", gateways.ErrMissing)
	}
	lab, err := gateways.Install(ctx, "referee", files, 18)
	if err != nil {
		return "", err
	}
	err = gateways.CreateOnce(ctx, place, func(dir string) error {
		text, err := lab.Command(
			ctx,
			filepath.Join(lab.Scripts(), "extract.cjs"),
			lab.Module("@seamapi/types/lib/seam/connect/openapi.js"),
		).
			Output()
		if err != nil {
			return fmt.Errorf("extract the published description: %w", err)
		}
		return os.WriteFile(filepath.Join(dir, "openapi.json"), text, 0o600)
	})
	return at, err
}

// CheckResponse checks a response with status 200 against both descriptions. It returns the violations that
// differences.md does not excuse.
func (r *Checker) CheckResponse(path string, body []byte) (complaints []string) {
	promised := r.ours.Paths.Value(path)
	if promised == nil {
		return nil // not part of the contract
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(path)
	_, _ = h.Write(body)
	sum := h.Sum64()
	r.mu.Lock()
	good := r.seen[sum]
	r.mu.Unlock()
	if good {
		return nil
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		return []string{fmt.Sprintf("the response of %s is not JSON: %v", path, err)}
	}
	for _, c := range validate(answerOf(promised), answer) {
		complaints = append(complaints, fmt.Sprintf("the response of %s violates our contract: %s", path, c))
	}
	if published := r.published.Paths.Value(path); published != nil {
		for _, c := range validate(answerOf(published), answer) {
			if !slices.ContainsFunc(r.differences, func(d Difference) bool { return d.excuses(path, c) }) {
				complaints = append(
					complaints,
					fmt.Sprintf("the response of %s violates the published description: %s", path, c),
				)
			}
		}
	}
	if len(complaints) == 0 {
		r.mu.Lock()
		r.seen[sum] = true
		r.mu.Unlock()
	}
	return complaints
}

// CheckRequest checks a request of a client against the published description. It returns the violations, and
// parameters that are not published.
func (r *Checker) CheckRequest(path string, body []byte) (complaints []string) {
	published := r.published.Paths.Value(path)
	if published == nil {
		return []string{path + " is not published"}
	}
	var params map[string]any
	if err := json.Unmarshal(body, &params); err != nil {
		return []string{"the request to " + path + " is no JSON object"}
	}
	accepted := bodyOf(published)
	for _, c := range validate(accepted, params) {
		complaints = append(complaints, "the request to "+path+" violates the published description: "+c)
	}
	for name := range params {
		if accepted.Properties[name] == nil {
			complaints = append(complaints, "the request to "+path+" has a parameter that is not published: "+name)
		}
	}
	return complaints
}

func answerOf(item *openapi3.PathItem) *openapi3.Schema {
	return item.Post.Responses.Status(200).Value.Content.Get("application/json").Schema.Value
}

// Difference is a row of differences.md.
type Difference struct {
	Path string // * means all
	What string // as the Checker reports it
}

func (d Difference) excuses(path, complaint string) bool {
	return (d.Path == "*" || d.Path == path) && d.What == complaint
}

var quoted = regexp.MustCompile("`([^`]+)`")

// parseDifferences reads the rows of all tables: | `path` | `what`, `what` | reason |. A missing path has two columns:
// | `path` | reason |.
func parseDifferences(text string) (list []Difference, err error) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 2 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		whats := [][]string{{"", missingPath}}
		if len(cells) == 5 {
			whats = quoted.FindAllStringSubmatch(cells[2], -1)
		}
		if len(cells) < 4 || len(cells) > 5 || strings.TrimSpace(cells[len(cells)-2]) == "" {
			return nil, fmt.Errorf("a row must have a path, differences unless it is missing, and a reason: %s", line)
		}
		for _, path := range quoted.FindAllStringSubmatch(cells[1], -1) {
			for _, what := range whats {
				list = append(list, Difference{Path: path[1], What: what[1]})
			}
		}
	}
	return list, nil
}
