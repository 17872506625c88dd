package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// hclLabels returns labels of Terraform resources for codes, each once.
func hclLabels(codes []codeView) []string {
	labels, taken := make([]string, len(codes)), map[string]bool{}
	for i, c := range codes {
		label := hclLabel(c.name)
		if taken[label] {
			label += "_" + strings.TrimPrefix(short(c.id.String()), "…")
		}
		for taken[label] {
			label += "_"
		}
		labels[i], taken[label] = label, true
	}
	return labels
}

// hclLabel returns a name as an identifier of Terraform: lower-case ASCII letters, digits, and underscores.
func hclLabel(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	label := strings.Trim(b.String(), "_")
	if label == "" || unicode.IsDigit(rune(label[0])) {
		label = strings.TrimRight("code_"+label, "_")
	}
	return label
}

// hclText quotes a text for HCL.
func hclText(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && i+1 < len(runes) && runes[i+1] == '{':
			b.WriteRune(r)
			b.WriteRune(r)
		case unicode.IsControl(r) || r == unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// hclAttribute is an argument of a block. The value is an expression.
type hclAttribute struct{ name, value string }

// hclBlock returns a block, formatted like terraform fmt does.
func hclBlock(header string, attributes []hclAttribute) string {
	width := 0
	for _, a := range attributes {
		width = max(width, len(a.name))
	}
	var b strings.Builder
	b.WriteString(header + " {\n")
	for _, a := range attributes {
		fmt.Fprintf(&b, "  %-*s = %s\n", width, a.name, a.value)
	}
	b.WriteString("}\n")
	return b.String()
}

// hclResource returns the Terraform resource of a code. The PIN is a variable, which stays out of the text. Codes whose
// PIN the vendor chooses have none.
func hclResource(c codeView, label string, vendorPIN bool) string {
	attributes := []hclAttribute{{"device_id", hclText(c.device.String())}, {"name", hclText(c.name)}}
	text := ""
	switch {
	case c.commonKey != "":
		attributes = append(attributes, hclAttribute{"common_code_key", hclText(c.commonKey)})
	case !vendorPIN && !c.kind.isOffline() && c.managed:
		variable := label + "_pin"
		text = hclBlock("variable "+hclText(variable), []hclAttribute{{"type", "string"}, {"sensitive", "true"}}) + "\n"
		attributes = append(attributes, hclAttribute{"code", "var." + variable})
	}
	if c.starts != nil {
		attributes = append(attributes, hclAttribute{"starts_at", hclTime(*c.starts, c.zone)})
	}
	if c.ends != nil {
		attributes = append(attributes, hclAttribute{"ends_at", hclTime(*c.ends, c.zone)})
	}
	switch c.kind {
	case kindOnce:
		attributes = append(attributes, hclAttribute{"offline", "{ is_one_time_use = true }"})
	case kindOffline:
		attributes = append(attributes, hclAttribute{"offline", "{}"})
	}
	if c.externalAllowed {
		attributes = append(attributes, hclAttribute{"is_external_modification_allowed", "true"})
	}
	return text + hclBlock(`resource "deviceaccess_access_code" `+hclText(label), attributes)
}

func hclTime(at time.Time, zone string) string {
	return hclText(at.In(location(zone)).Format(time.RFC3339Nano))
}

// hclImport returns the block that imports a code. With the lock in front, a plan converts nothing.
func hclImport(c codeView, label string) string {
	return hclBlock("import", []hclAttribute{
		{"to", "deviceaccess_access_code." + label},
		{"id", hclText(c.device.String() + "/" + c.id.String())},
	})
}
