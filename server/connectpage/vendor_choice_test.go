package connectpage

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
)

func namesOf(vendors []Vendor) (out []string) {
	for _, v := range vendors {
		out = append(out, v.DisplayName)
	}
	return out
}

// Vendors of which the workspace has accounts come first.
func TestVendors_SortedByUse(t *testing.T) {
	t.Parallel()
	vendors := []Vendor{
		{Name: "yale", DisplayName: "Yale"},
		{Name: "zwave_js", Adapter: "zwavejs", DisplayName: "Z-Wave JS"},
		{Name: "ecobee", DisplayName: "ecobee"},
		{Name: "august", DisplayName: "August"},
		{Name: "nuki", Adapter: "nuki", DisplayName: "Nuki"},
	}
	sortVendors(vendors, map[account.Kind]bool{
		{Adapter: "zwavejs"}: true, {Adapter: "nuki", Provider: "nuki"}: true, {Adapter: "other", Provider: "x"}: true,
	})
	if got := namesOf(vendors); !slices.Equal(got, []string{"Nuki", "Z-Wave JS", "August", "ecobee", "Yale"}) {
		t.Error(got)
	}
}

func TestVendors_Search(t *testing.T) {
	t.Parallel()
	vendors := []Vendor{{DisplayName: "Z-Wave JS"}, {DisplayName: "igloohome"}, {DisplayName: "Łock Ünion"}}
	for text, want := range map[string][]string{
		"":       {"Z-Wave JS", "igloohome", "Łock Ünion"},
		"zwave":  {"Z-Wave JS"},
		"IGLOO ": {"igloohome"},
		"union":  {"Łock Ünion"},
		"nuki":   nil,
	} {
		if got := namesOf(searchVendors(vendors, text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
