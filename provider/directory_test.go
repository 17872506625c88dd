package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/tfcore"
)

// directory is a workspace without the terraform command: its commands drive the provider inside this process.
type directory struct {
	t     *testing.T
	core  *tfcore.Core
	files map[string]string
	saved *tfcore.Plan
	seen  strings.Builder // everything that the commands have printed
}

func newDirectory(t *testing.T, files map[string]string) *directory {
	t.Helper()
	return &directory{t: t, core: tfcore.New(t, "deviceaccess", NewServer("test")), files: maps.Clone(files)}
}

// rewrite replaces main.tf.
func (d *directory) rewrite(content string) { d.files["main.tf"] = content }

// expect runs a command, and fails the test when it does not end as expected.
func (d *directory) expect(success bool, args ...string) {
	d.t.Helper()
	from := d.seen.Len()
	if ok := d.command(args...); ok != success {
		d.t.Fatalf("terraform %q succeeds: %t; it says\n%s", args, ok, d.seen.String()[from:])
	}
}

// read is what a command prints.
func (d *directory) read(args ...string) string {
	d.t.Helper()
	from := d.seen.Len()
	d.expect(true, args...)
	return d.seen.String()[from:]
}

// plain is read without line breaks.
func (d *directory) plain(args ...string) string {
	d.t.Helper()
	return plainly(d.read(args...))
}

func (d *directory) source() string {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		all.WriteString(d.files[name] + "\n")
	}
	return all.String()
}

// command runs a command with its flags, and reports whether it has succeeded.
func (d *directory) command(args ...string) bool {
	d.t.Helper()
	flags, operands := map[string]bool{}, []string{}
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "-") {
			flags[arg] = true
		} else {
			operands = append(operands, arg)
		}
	}
	options := tfcore.Options{Destroy: flags["-destroy"] || args[0] == "destroy", SkipRefresh: flags["-refresh=false"]}
	for _, known := range []string{"-destroy", "-refresh=false", "-auto-approve", "-no-color", "-detailed-exitcode", "-out=plan", "-json", "-refresh-only"} {
		delete(flags, known)
	}
	if len(flags) > 0 {
		d.t.Fatalf("terraform %q needs the terraform command", args)
	}
	switch {
	case slices.Contains(args, "-refresh-only") && args[0] == "apply":
		return d.print(d.core.Refresh(d.source()))
	case args[0] == "plan":
		return d.plan(options) && (d.saved.ExitCode() == 0 || !slices.Contains(args, "-detailed-exitcode"))
	case args[0] == "apply" && len(operands) > 0:
		return d.print(d.core.Apply(d.source(), d.saved))
	case args[0] == "apply" || args[0] == "destroy":
		return d.plan(options) && d.print(d.core.Apply(d.source(), d.saved))
	case args[0] == "import":
		return d.print(d.core.Import(d.source(), operands[0], operands[1]))
	case args[0] == "untaint":
		d.core.Untaint(operands[0])
	case args[0] == "state" && operands[0] == "rm":
		d.core.Forget(operands[1])
	case args[0] == "state" && operands[0] == "list":
		for _, r := range d.core.State().Values.RootModule.Resources {
			fmt.Fprintln(&d.seen, r.Address)
		}
	case args[0] == "show" && slices.Contains(args, "-json"):
		encoded, err := json.Marshal(d.core.State())
		if err != nil {
			d.t.Fatal(err)
		}
		d.seen.Write(encoded)
	default:
		d.t.Fatalf("terraform %q needs the terraform command", args)
	}
	return true
}

func (d *directory) plan(o tfcore.Options) bool {
	d.t.Helper()
	d.saved = nil
	plan, diags := d.core.Plan(d.source(), o)
	if plan != nil {
		d.saved = plan
		d.seen.WriteString(plan.Summary())
	}
	return d.print(diags)
}

func (d *directory) print(diags tfcore.Diagnostics) bool {
	d.seen.WriteString(diags.String())
	return !diags.HasErrors()
}
