package connectpage

import (
	"slices"
	"strings"
)

// htmxConfig keeps htmx from what the policy forbids, and has refusals be shown like any answer.
const htmxConfig = `{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"historyEnabled":false,` +
	`"responseHandling":[{"code":"204","swap":false},{"code":"...","swap":true}]}`

// things are what somebody connects who chooses one of the vendors.
func things(vendors ...Vendor) string {
	isSystem := func(v Vendor) bool { return v.AccessSystems }
	switch {
	case !slices.ContainsFunc(vendors, isSystem):
		return "locks"
	case slices.ContainsFunc(vendors, func(v Vendor) bool { return !isSystem(v) }):
		return "locks or access systems"
	}
	return "access systems"
}

// use is what the inviter will do with them.
func use(vendor Vendor) string {
	if vendor.AccessSystems {
		return "will see the access systems of this account and decide who is on them."
	}
	return "will see the locks of this account and manage the codes on them."
}

// selected is the vendor that was logged in to on the webview.
func (v *visit) selected() (one Vendor) {
	for _, vendor := range v.vendors {
		if name := v.webview.SelectedProvider; name != nil && *name == vendor.Name {
			one = vendor
		}
	}
	return one
}

func loginTitle(vendor Vendor, refused *Refusal) string {
	title := "Log in to " + vendor.DisplayName
	if refused != nil { // read out first where the page was loaded anew
		title = "Not logged in: " + title
	}
	return title
}

// shown is what stands in a field: what was entered, unless it is a secret.
func shown(f Field, entered string) string {
	switch {
	case f.Kind == "password":
		return ""
	case f.Kind == "url" && strings.Contains(entered, "@"): // somebody has written a password into it
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

// wrong says whether the refusal is about the field.
func wrong(f Field, refused *Refusal) bool { return refused != nil && refused.Field == f.Name }

// described names what explains the field.
func described(f Field, refused *Refusal) string {
	var by []string
	if f.Help != "" {
		by = append(by, f.Name+"-help")
	}
	if wrong(f, refused) {
		by = append(by, "refusal")
	}
	return strings.Join(by, " ")
}

// focused says whether the i-th field is where to go on.
func focused(vendor Vendor, refused *Refusal, i int) bool {
	if refused != nil && refused.Field != "" {
		return wrong(vendor.Fields[i], refused)
	}
	return i == 0
}
