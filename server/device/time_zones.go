package device

import (
	"cmp"
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
	// Zone is the IANA time zone of a device of any provider; empty: not given.
	Zone string
	// ByProvider are IANA time zones by device_provider_name; an empty one is not given.
	ByProvider map[string]string
}

// checkZone fails with Invalid for an unknown time zone. An empty one passes.
func checkZone(field, zone string) error {
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		return domain.Invalidf(field, "Not an IANA time zone; write it like Europe/Zurich")
	}
	return nil
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
		if err := checkZone(fmt.Sprintf("devices.%d.time_zone", i), z.Zone); err != nil {
			return err
		}
		for provider, zone := range z.ByProvider {
			if err := checkZone(fmt.Sprintf("devices.%d.%s_metadata.time_zone", i, provider), zone); err != nil {
				return err
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
			reported := byDevice[id].Zone
			for provider, zone := range byDevice[id].ByProvider {
				switch {
				case zone == "":
				case provider != d.Provider:
					i := slices.IndexFunc(zones, func(z TimeZone) bool { return domain.IsID(z.DeviceID, id) })
					return domain.Invalidf(
						fmt.Sprintf("devices.%d.%s_metadata", i, provider), "Device %s is one of %s", id, d.Provider,
					)
				default:
					reported = cmp.Or(reported, zone)
				}
			}
			if reported == "" {
				continue
			}
			err = tx.ReportTimeZone(ctx, dbsqlc.ReportTimeZoneParams{DeviceID: id, ReportedTimeZone: &reported})
			if err != nil {
				return err
			}
			// The programs of a thermostat may begin at other times.
			if err := s.accounts.WakeDevice(ctx, tx, id, false); err != nil {
				return err
			}
		}
		return nil
	})
	if _, ok := errors.AsType[*domain.Error](err); err != nil && !ok {
		err = fmt.Errorf("report time zones: %w", err)
	}
	return err
}
