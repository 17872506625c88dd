package connectpage

import (
	"context"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// foreign returns the attributes of an element with a text that may be in no language of the catalog: an empty lang,
// which means an unknown language.
func foreign(text string) templ.Attributes {
	if isKnown(text) {
		return nil
	}
	return templ.Attributes{"lang": ""}
}

// selected returns the vendor that the person logged in to.
func (v *visit) selected() (one Vendor) {
	for _, vendor := range v.vendors {
		if name := v.webview.SelectedProvider; name != nil && *name == vendor.Name {
			one = vendor
		}
	}
	return one
}

func loginTitle(ctx context.Context, vendor Vendor, refused *login.Refusal) string {
	if refused != nil { // screen readers read it first when the page reloads
		return sayf(ctx, "Could not log in to %s", vendor.DisplayName)
	}
	return sayf(ctx, "Log in to %s", vendor.DisplayName)
}

// fieldValue returns the value of a field: the entered value, unless it is secret.
func fieldValue(f login.Field, entered string) string {
	switch {
	case f.Kind == "password", f.Autocomplete == "one-time-code":
		return ""
	case f.Kind == "url" && strings.Contains(entered, "@"): // it may contain a password
		scheme, rest, isURL := strings.Cut(entered, "://")
		if !isURL {
			return ""
		}
		return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	case entered != "":
		return entered
	}
	return f.Value
}

// showText is the text of the button that shows what is in a field with a secret.
func showText(f login.Field) string {
	if f.Autocomplete == "current-password" {
		return "Show password"
	}
	return "Show entry"
}

// isWrong reports whether the refusal is about the field.
func isWrong(f login.Field, refused *login.Refusal) bool {
	return refused != nil && refused.Field == f.Name
}

// isAbout reports whether the refusal is about one of the fields.
func isAbout(fields []login.Field, refused *login.Refusal) bool {
	return slices.ContainsFunc(fields, func(f login.Field) bool { return isWrong(f, refused) })
}

// describedBy returns the IDs of the elements that explain the field.
func describedBy(f login.Field, refused *login.Refusal) string {
	var by []string
	if isWrong(f, refused) {
		by = append(by, f.Name+"-error")
	}
	if f.Help != "" {
		by = append(by, f.Name+"-help")
	}
	return strings.Join(by, " ")
}

// hasFocus reports whether the i-th field gets the focus.
func hasFocus(fields []login.Field, refused *login.Refusal, i int) bool {
	if refused != nil && isAbout(fields, refused) {
		return isWrong(fields[i], refused)
	}
	return i == 0
}

// hasFormFocus is hasFocus for the login form. The link to the vendor's pages comes before the form.
func hasFormFocus(vendor Vendor, refused *login.Refusal, i int) bool {
	if vendor.Callback != "" && !isAbout(vendor.Fields, refused) {
		return false
	}
	return hasFocus(vendor.Fields, refused, i)
}
