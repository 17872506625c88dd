package packagetest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// guideLimit is how long it may take from a machine with only Debian to a code on a lock.
const guideLimit = 5 * time.Minute

// guide is the guide "Run it": the shell blocks by the titles of their sections.
type guide struct {
	*testing.T
	blocks map[string][]string
	used   map[string]int // the number of blocks of a section that the test has run
}

func readGuide(t *testing.T) *guide {
	t.Helper()
	text, err := os.ReadFile(repository + "/server/docs/run-it.md")
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{T: t, blocks: map[string][]string{}, used: map[string]int{}}
	for _, section := range strings.Split("\n"+string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, m := range regexp.MustCompile("(?s)```shell\n(.*?)```").FindAllStringSubmatch(body, -1) {
			g.blocks[title] = append(g.blocks[title], m[1])
		}
	}
	return g
}

// with returns the guide for a part of the test.
func (g *guide) with(t *testing.T) *guide {
	part := *g
	part.T = t
	return &part
}

// next returns the next block of a section. Replacements are pairs of a text in the block, such as the name of a lock,
// and what this machine has instead.
func (g *guide) next(section string, replacements ...string) string {
	g.Helper()
	i := g.used[section]
	if i >= len(g.blocks[section]) {
		g.Fatalf("section %q of the guide has only %d shell blocks", section, i)
	}
	g.used[section]++
	return g.replace(g.blocks[section][i], replacements...)
}

// replace replaces texts that a block must have.
func (g *guide) replace(block string, replacements ...string) string {
	g.Helper()
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(block, replacements[i]) {
			g.Fatalf("a block of the guide is without %q:\n%s", replacements[i], block)
		}
	}
	return strings.NewReplacer(replacements...).Replace(block)
}

// skip marks the next block of a section as not run.
func (g *guide) skip(section, start string) {
	g.Helper()
	if block := g.next(section); !strings.HasPrefix(block, start) {
		g.Fatalf("section %q of the guide has another block: %s", section, block)
	}
}

// finish fails if a block of a section was not run.
func (g *guide) finish(section string) {
	g.Helper()
	if left := g.blocks[section][g.used[section]:]; len(left) > 0 {
		g.Errorf("no test runs these commands of section %q:\n%s", section, strings.Join(left, "\n"))
	}
}

// lockName returns the name of the only lock of a server, once the server lists it.
func lockName(t *testing.T, url, key string) (name string) {
	t.Helper()
	testenv.Until(t, "the server lists the lock", func() bool {
		devices := devicesOf(t, url, key)
		if len(devices) == 1 {
			name = devices[0].DisplayName
		}
		return name != ""
	})
	return name
}

// checkPIN fails if a lock does not have a PIN.
func checkPIN(t *testing.T, lock *zwave.Lock, pin, when string) {
	t.Helper()
	for _, code := range lock.State(t).Codes {
		if code.PIN == pin {
			return
		}
	}
	t.Errorf("%s, the memory of the lock is without the code", when)
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// lastID returns the last id in the output of a command.
func lastID(t *testing.T, out string) string {
	t.Helper()
	ids := uuid.FindAllString(out, -1)
	if len(ids) == 0 {
		t.Fatalf("no id is printed: %s", out)
	}
	return ids[len(ids)-1]
}

// lines returns the commands of a block.
func lines(block string) []string {
	return slices.DeleteFunc(strings.Split(block, "\n"), func(line string) bool { return line == "" })
}
