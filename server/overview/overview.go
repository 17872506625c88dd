// Package overview reads what the console shows across a workspace: which devices and codes match a filter, what is
// wrong now, and what begins and ends soon. It reads identifiers and names only, so none of its results contains a PIN.
package overview

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Service reads overviews.
type Service struct{ db *store.DB }

// New creates a Service. db must be migrated.
func New(db *store.DB) *Service { return &Service{db} }

// Position is where a page of a list starts: before the row with that time of creation and identifier. The zero
// Position is the start of the list, which has the newest row.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// String returns the position as text for URLs; empty: the start.
func (p Position) String() string {
	if p.ID == uuid.Nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(p.At.UTC().Format(time.RFC3339Nano) + " " + p.ID.String()))
}

// ParsePosition reads what String returns. Another text is the start of the list.
func ParsePosition(text string) (p Position) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return p
	}
	at, id, _ := strings.Cut(string(raw), " ")
	if p.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return Position{}
	}
	if p.ID, err = uuid.Parse(id); err != nil {
		return Position{}
	}
	return p
}

// before returns the bounds of the query.
func (p Position) before() (time.Time, uuid.UUID) {
	if p.ID == uuid.Nil {
		return domain.Never, uuid.Max
	}
	return p.At, p.ID
}

// List is a page of a list: identifiers, newest first, and where the next page starts; zero: this is the last one.
type List struct {
	IDs  []uuid.UUID
	Next Position
}

// row is what a query returns of each row.
type row struct {
	id uuid.UUID
	at time.Time
}

// cut returns the first limit rows as a page. The query read one row more.
func cut(rows []row, limit int) (l List) {
	for i, r := range rows {
		if i == limit {
			l.Next = Position{rows[i-1].at, rows[i-1].id}
			break
		}
		l.IDs = append(l.IDs, r.id)
	}
	return l
}

// DeviceFilter are conditions that must all hold. Zero fields are no condition.
type DeviceFilter struct {
	Unmanaged bool
	Account   uuid.UUID
	// Kind is a capability.Set.Kind: lock, thermostat, or noise_detection.
	Kind     string
	Online   *bool
	Provider string
	// Customer is the customer_key of the account.
	Customer string
	// BatteryBelow is a level from 0 to 1.
	BatteryBelow float64
	// Search is a part of the name.
	Search string
}

// Devices lists the devices of a workspace.
func (s *Service) Devices(
	ctx context.Context,
	workspace uuid.UUID,
	f DeviceFilter,
	from Position,
	limit int,
) (List, error) {
	var accounts []uuid.UUID // nil: all
	if f.Customer != "" {
		arg := dbsqlc.AccountsOfCustomerParams{WorkspaceID: workspace, CustomerKey: f.Customer}
		found, err := s.db.AccountsOfCustomer(ctx, arg)
		if err != nil || len(found) == 0 {
			return List{}, domain.Wrap(err, "find the accounts of the customer")
		}
		accounts = found
	}
	at, id := from.before()
	found, err := s.db.UnpreparedQueries.OverviewDevices(ctx, dbsqlc.OverviewDevicesParams{
		WorkspaceID:        workspace,
		IsManaged:          !f.Unmanaged,
		BeforeAt:           at,
		BeforeID:           id,
		ConnectedAccountID: nonZero(f.Account),
		Kind:               nonZero(f.Kind),
		Online:             f.Online,
		BatteryBelow:       nonZero(f.BatteryBelow),
		Provider:           nonZero(f.Provider),
		Pattern:            store.SearchPattern(f.Search),
		AccountIds:         accounts,
		MaxRows:            int32(limit) + 1,
	})
	if err != nil {
		return List{}, fmt.Errorf("list the devices: %w", err)
	}
	rows := make([]row, len(found))
	for i, r := range found {
		rows[i] = row{r.DeviceID, r.CreatedAt}
	}
	return cut(rows, limit), nil
}

// Failing is the CodeFilter.Status of codes with an error.
const Failing = "failing"

// CodeFilter are conditions that must all hold. Zero fields are no condition.
type CodeFilter struct {
	Device uuid.UUID
	// Status is set, unset, setting, removing, unknown, or Failing.
	Status string
	// ChangedBefore is the time before which the code was last changed. Without a Status, codes that are set do not
	// match.
	ChangedBefore *time.Time
	// Kind is always, time_bound, one_time, or offline, which includes one_time.
	Kind string
	// Search is a part of the name.
	Search string
}

// Codes lists the managed codes of a workspace.
func (s *Service) Codes(
	ctx context.Context,
	workspace uuid.UUID,
	f CodeFilter,
	from Position,
	limit int,
) (List, error) {
	rows, err := s.findCodes(ctx, workspace, f, from, int32(limit)+1)
	if err != nil {
		return List{}, fmt.Errorf("list the codes: %w", err)
	}
	return cut(rows, limit), nil
}

func (s *Service) findCodes(
	ctx context.Context,
	workspace uuid.UUID,
	f CodeFilter,
	from Position,
	limit int32,
) (rows []row, err error) {
	at, id := from.before()
	switch {
	case f.Status == "" && f.ChangedBefore == nil || f.Status == "set":
		found, err := s.db.UnpreparedQueries.OverviewCodes(ctx, dbsqlc.OverviewCodesParams{
			WorkspaceID:   workspace,
			BeforeAt:      at,
			BeforeID:      id,
			DeviceID:      nonZero(f.Device),
			Kind:          nonZero(f.Kind),
			Status:        nonZero(f.Status),
			ChangedBefore: f.ChangedBefore,
			Pattern:       store.SearchPattern(f.Search),
			MaxRows:       limit,
		})
		for _, r := range found {
			rows = append(rows, row{r.AccessCodeID, r.CreatedAt})
		}
		return rows, err
	case f.Status == Failing:
		found, err := s.db.UnpreparedQueries.OverviewCodesFailing(ctx, dbsqlc.OverviewCodesFailingParams{
			WorkspaceID:   workspace,
			BeforeAt:      at,
			BeforeID:      id,
			DeviceID:      nonZero(f.Device),
			Kind:          nonZero(f.Kind),
			ChangedBefore: f.ChangedBefore,
			Pattern:       store.SearchPattern(f.Search),
			MaxRows:       limit,
		})
		for _, r := range found {
			rows = append(rows, row{r.AccessCodeID, r.CreatedAt})
		}
		return rows, err
	}
	found, err := s.db.UnpreparedQueries.OverviewCodesNotSet(ctx, dbsqlc.OverviewCodesNotSetParams{
		Status:        nonZero(f.Status),
		WorkspaceID:   workspace,
		BeforeAt:      at,
		BeforeID:      id,
		DeviceID:      nonZero(f.Device),
		Kind:          nonZero(f.Kind),
		Pattern:       store.SearchPattern(f.Search),
		ChangedBefore: f.ChangedBefore,
		MaxRows:       limit,
	})
	for _, r := range found {
		rows = append(rows, row{r.AccessCodeID, r.CreatedAt})
	}
	return rows, err
}

func nonZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// CodeCount counts the managed codes of a device.
type CodeCount struct{ All, Set int }

// CountCodes counts the codes of devices. Devices without codes are absent.
func (s *Service) CountCodes(ctx context.Context, devices []uuid.UUID) (map[uuid.UUID]CodeCount, error) {
	rows, err := s.db.CountCodesOfDevices(ctx, devices)
	if err != nil {
		return nil, fmt.Errorf("count the codes of devices: %w", err)
	}
	out := map[uuid.UUID]CodeCount{}
	for _, r := range rows {
		out[r.DeviceID] = CodeCount{All: int(r.Codes), Set: int(r.Set)}
	}
	return out, nil
}

// DeviceName is the name of a device and the IANA time zone that a client reported for it; empty: unknown.
type DeviceName struct{ Name, TimeZone string }

// NameDevices returns the names of devices.
func (s *Service) NameDevices(
	ctx context.Context,
	workspace uuid.UUID,
	devices []uuid.UUID,
) (map[uuid.UUID]DeviceName, error) {
	rows, err := s.db.NameDevices(ctx, dbsqlc.NameDevicesParams{WorkspaceID: workspace, DeviceIds: devices})
	if err != nil {
		return nil, fmt.Errorf("read the names of devices: %w", err)
	}
	out := map[uuid.UUID]DeviceName{}
	for _, r := range rows {
		out[r.DeviceID] = DeviceName{r.Name, r.TimeZone}
	}
	return out, nil
}

// codeName is the name of a code for people.
func codeName(name *string) string { return cmp.Or(domain.Value(name), "Code without a name") }
