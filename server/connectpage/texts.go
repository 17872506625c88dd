package connectpage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// productNames names what the person connects with one of the vendors, such as "locks or access systems".
func productNames(vendors ...Vendor) string {
	var names []string
	for _, v := range vendors {
		if name := cmp.Or(v.Products, lockProducts); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch last := len(names) - 1; last {
	case -1:
		return lockProducts
	case 0, 1:
		return strings.Join(names, " or ")
	default:
		return strings.Join(names[:last], ", ") + ", or " + names[last]
	}
}

// lockProducts are the products of most vendors.
const lockProducts = "locks"

// question asks the person to choose one of the vendors.
func question(vendors ...Vendor) string {
	name := productNames(vendors...)
	if strings.Contains(name, " or ") {
		return "Which brand do you use?"
	}
	return "Which brand is your " + strings.TrimSuffix(name, "s") + "?"
}

// purpose says what the inviter will do with the account.
func purpose(vendor Vendor) string {
	switch name := productNames(vendor); name {
	case lockProducts:
		return "will see the locks of this account and manage the codes on them."
	case "access systems":
		return "will see the access systems of this account and manage who can use them."
	default:
		return "will see the " + name + " of this account and change their settings."
	}
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

func loginTitle(vendor Vendor, refused *login.Refusal) string {
	title := "Log in to " + vendor.DisplayName
	if refused != nil { // screen readers read it first when the page reloads
		title = "Not logged in: " + title
	}
	return title
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

// isWrong reports whether the refusal is about the field.
func isWrong(f login.Field, refused *login.Refusal) bool {
	return refused != nil && refused.Field == f.Name
}

// describedBy returns the IDs of the elements that explain the field.
func describedBy(f login.Field, refused *login.Refusal) string {
	var by []string
	if f.Help != "" {
		by = append(by, f.Name+"-help")
	}
	if isWrong(f, refused) {
		by = append(by, "refusal")
	}
	return strings.Join(by, " ")
}

// hasFocus reports whether the i-th field gets the focus.
func hasFocus(fields []login.Field, refused *login.Refusal, i int) bool {
	if refused != nil && refused.Field != "" {
		return isWrong(fields[i], refused)
	}
	return i == 0
}

// hasFormFocus is hasFocus for the login form. The link to the vendor's pages comes before the form.
func hasFormFocus(vendor Vendor, refused *login.Refusal, i int) bool {
	if vendor.Callback != "" && (refused == nil || refused.Field == "") {
		return false
	}
	return hasFocus(vendor.Fields, refused, i)
}
