package tfcore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Diagnostic is an error or a warning as Terraform shows it.
type Diagnostic struct {
	IsError         bool
	Summary, Detail string
	Address         string // of the resource; may be empty
	// Snippet contains the configuration lines that it points to; may be empty.
	Snippet string
}

// Diagnostics are the errors and warnings of a command.
type Diagnostics []Diagnostic

// HasErrors reports whether one of them is an error.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if d.IsError {
			return true
		}
	}
	return false
}

// String returns what the terraform command prints, without colors and frames.
func (ds Diagnostics) String() string {
	var out strings.Builder
	for _, d := range ds {
		kind := "Warning"
		if d.IsError {
			kind = "Error"
		}
		fmt.Fprintf(&out, "%s: %s\n\n", kind, d.Summary)
		if d.Address != "" {
			fmt.Fprintf(&out, "  with %s,\n", d.Address)
		}
		if d.Snippet != "" {
			fmt.Fprintf(&out, "  on %s:\n%s\n\n", fileName, d.Snippet)
		}
		fmt.Fprintf(&out, "%s\n\n", d.Detail)
	}
	return out.String()
}

// err returns the errors among them, or nil.
func (ds Diagnostics) err() error {
	var failures Diagnostics
	for _, d := range ds {
		if d.IsError {
			failures = append(failures, d)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return errors.New(failures.String())
}

func ofHCL(diags hcl.Diagnostics, source []byte) (all Diagnostics) {
	for _, d := range diags {
		one := Diagnostic{IsError: d.Severity == hcl.DiagError, Summary: d.Summary, Detail: d.Detail}
		if d.Subject != nil {
			one.Snippet = lines(source, *d.Subject)
		}
		all = append(all, one)
	}
	return all
}

// ofProvider converts the provider's diagnostics for the block at body, which may be nil.
func ofProvider(diags []*tfprotov6.Diagnostic, address string, body *hclsyntax.Body, source []byte) (all Diagnostics) {
	for _, d := range diags {
		one := Diagnostic{
			IsError: d.Severity == tfprotov6.DiagnosticSeverityError,
			Summary: d.Summary,
			Detail:  d.Detail,
			Address: address,
		}
		if body != nil && d.Attribute != nil {
			one.Snippet = lines(source, attributeRange(body, d.Attribute.Steps()))
		}
		all = append(all, one)
	}
	return all
}

// attributeRange returns the range of an attribute, or of its block if it is not configured.
func attributeRange(body *hclsyntax.Body, path []tftypes.AttributePathStep) hcl.Range {
	if len(path) > 0 {
		if name, ok := path[0].(tftypes.AttributeName); ok {
			if at := body.Attributes[string(name)]; at != nil {
				return at.SrcRange
			}
			for _, block := range body.Blocks {
				if block.Type == string(name) {
					return attributeRange(block.Body, path[1:])
				}
			}
		}
	}
	return body.MissingItemRange()
}

// lines returns the whole lines of a range.
func lines(source []byte, rng hcl.Range) string {
	if len(source) == 0 {
		return ""
	}
	start := bytes.LastIndexByte(source[:rng.Start.Byte], '\n') + 1
	end := bytes.IndexByte(source[rng.End.Byte:], '\n')
	if end < 0 {
		return string(source[start:])
	}
	return string(source[start : rng.End.Byte+end])
}
