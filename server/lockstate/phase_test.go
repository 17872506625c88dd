package lockstate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// documentedTransitions returns the transitions of the table in the package documentation.
func documentedTransitions(t *testing.T) walkTransitions {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	out := walkTransitions{}
	for line := range strings.Lines(string(doc)) {
		columns := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "//\t"), "|")
		if len(columns) != 3 || strings.TrimSpace(columns[0]) == "from" {
			continue
		}
		for to := range strings.SplitSeq(columns[2], ",") {
			out[walkTransition{
				from:  Phase(strings.TrimSpace(columns[0])),
				cause: strings.TrimSpace(columns[1]),
				to:    Phase(strings.TrimSpace(to)),
			}]++
		}
	}
	return out
}

// corpusWalks returns the scripts of the corpus of FuzzWalk. Each shows a transition that random walks reach seldom.
func corpusWalks(t *testing.T) (out []walkScript) {
	t.Helper()
	files, err := filepath.Glob("testdata/fuzz/FuzzWalk/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(string(b), "[]byte(")
		script, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, decodeWalk([]byte(script)))
	}
	return out
}

func TestPhaseOf_TransitionsAreDocumented(t *testing.T) {
	t.Parallel()
	seen := walkTransitions{}
	run := func(s walkScript) {
		if err := s.run(&seen); err != nil {
			s.report(t, "transitions", err)
		}
	}
	for _, n := range slices.Concat(walkComplaints, walkFound, walkRare) {
		run(walkScript{n.profile, n.steps})
	}
	for _, s := range corpusWalks(t) {
		run(s)
	}
	for _, seed := range walkSeeds[:4] {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 100 {
			run(randomWalk(rng, walkLength))
		}
	}
	documented := documentedTransitions(t)
	row := func(tr walkTransition) string { return fmt.Sprintf("%s | %s | %s", tr.from, tr.cause, tr.to) }
	for _, tr := range slices.SortedFunc(maps.Keys(seen), func(a, b walkTransition) int {
		return strings.Compare(row(a), row(b))
	}) {
		if documented[tr] == 0 {
			t.Errorf("the documentation lacks %s", row(tr))
		}
	}
	for tr := range documented {
		if seen[tr] == 0 {
			t.Errorf("the documented transition %s does not happen", row(tr))
		}
	}
}
