package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// TimeZone is the time zone of a device, as reported by a client because the vendor does not report it.
type TimeZone struct {
	DeviceID string
	// ByProvider are IANA time zones by device_provider_name; an empty one is not given.
	ByProvider map[string]string
}

// ReportTimeZones records the time zones of devices, all or none.
// It fails with NotFound, and with Invalid if a time zone is unknown or is for devices of another vendor.
func (s *Service) ReportTimeZones(ctx context.Context, p domain.Principal, zones []TimeZone) error {
	byDevice := map[uuid.UUID]TimeZone{}
	var ids []uuid.UUID
	for i, z := range zones {
		id, err := uuid.Parse(z.DeviceID)
		if err != nil {
			return deviceNotFound("device_id", z.DeviceID)
		}
		if _, twice := byDevice[id]; twice {
			return domain.Invalidf(fmt.Sprintf("devices.%d.device_id", i), "Device %s is named twice", id)
		}
		for provider, zone := range z.ByProvider {
			if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
				field := fmt.Sprintf("devices.%d.%s_metadata.time_zone", i, provider)
				return domain.Invalidf(field, "Not an IANA time zone; write it like Europe/Zurich")
			}
		}
		byDevice[id] = z
		ids = append(ids, id)
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		for _, id := range ids {
			d, err := lockManagedDevice(ctx, tx, p, id)
			if err != nil {
				return err
			}
			for provider, zone := range byDevice[id].ByProvider {
				switch {
				case zone == "":
				case provider != d.Provider:
					i := slices.IndexFunc(zones, func(z TimeZone) bool { return domain.IsID(z.DeviceID, id) })
					return domain.Invalidf(
						fmt.Sprintf("devices.%d.%s_metadata", i, provider), "Device %s is one of %s", id, d.Provider,
					)
				default:
					if err := tx.ReportTimeZone(ctx, dbsqlc.ReportTimeZoneParams{
						DeviceID:         id,
						ReportedTimeZone: &zone,
					}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if _, ok := errors.AsType[*domain.Error](err); err != nil && !ok {
		err = fmt.Errorf("report time zones: %w", err)
	}
	return err
}
