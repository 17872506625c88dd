package console

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// Accounts connects accounts of vendors, as the command line does.
type Accounts interface {
	// Kinds returns the kinds of accounts, sorted by name.
	Kinds() []AccountKind
	// Brands returns what people can log in to on connect pages of a workspace.
	Brands(in account.Workspace) []Brand
	// Connect checks a connection and stores it as a new account. It fails with Invalid where the check fails, and with
	// Conflict where the address is connected.
	Connect(ctx context.Context, n NewAccount) (uuid.UUID, error)
	// Update checks the connection of an account with changed settings, and stores it. Settings that are absent stay. It
	// fails like Connect, and with NotFound.
	Update(ctx context.Context, id uuid.UUID, settings map[string]string) error
}

// AccountKind is a kind of account: a vendor's cloud, or a kind of gateway.
type AccountKind struct {
	Adapter     string
	DisplayName string
	// Usage says what the form connects; empty: people connect such accounts on connect pages only.
	Usage    string
	Settings []AccountSetting
	// Verification says what the adapter was tested with. ReadOnly means that new devices start out unmanaged because of
	// it.
	Verification string
	ReadOnly     bool
	// LacksClient means that the server has no registration at the vendor yet.
	LacksClient bool
	// Budget is the vendor's limit of calls; zero: there is none.
	Budget account.Bucket
}

// AccountSetting is a field of the form that connects an account.
type AccountSetting struct {
	Name, Label, Help, Default string
	Required                   bool
	// Secret values are never shown again. The value of a file is its content.
	Secret, IsFile bool
}

// Brand is a vendor on connect pages.
type Brand struct {
	// Name is the device_provider_name of the API.
	Name        string
	DisplayName string
}

// NewAccount is a request to connect an account.
type NewAccount struct {
	Workspace uuid.UUID
	Adapter   string
	Name      string // empty: after the vendor and the address
	// Settings are the values of the form, by name.
	Settings map[string]string
	// AllowWrites manages new devices of an adapter that never met its vendor.
	AllowWrites bool
}

// WebhookTester sends test events.
type WebhookTester interface {
	// TestWebhook sends a test event to a webhook of the workspace. It fails with NotFound.
	TestWebhook(ctx context.Context, p domain.Principal, id string) (webhook.TestResult, error)
}
