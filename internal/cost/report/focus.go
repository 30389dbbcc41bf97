package report

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tideline-io/tideline/internal/cost"
)

// focusColumns are those of [FOCUS] 1.0, in the order of the alphabet, and then ours, which begin with x_ as the specification
// asks of others' columns.
var focusColumns = []string{
	"BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
	"ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit",
	"ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName",
	"PublisherName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "SubAccountId",
	"SubAccountName", "Tags", "x_CpuHours", "x_MemoryGiBHours", "x_RecoverableCost", "x_Utilization", "x_WastedCost",
}

// provider stands for Tideline where FOCUS asks who provides, publishes and invoices.
const provider = "Tideline"

// FOCUS is a subset of the FinOps Open Cost and Usage Specification 1.0 (https://focus.finops.org/focus-specification/v1-0/): a
// charge per task for the whole period, in UTC. There is no invoice behind it: billed, effective, contracted and list cost are
// all what the price list says. The sub account is the namespace; team and user are tags, which keep their values as users wrote
// them, in JSON.
func FOCUS(r cost.Report, o Options) ([]byte, error) {
	r, o = applyOptions(r, o)
	m := moneyOf(r.Currency)
	from, to := r.Period.From.UTC().Format(time.RFC3339), r.Period.To.UTC().Format(time.RFC3339)
	records := [][]string{focusColumns}
	for _, row := range r.By[cost.ByTask] {
		tags, err := focusTags(row.Key)
		if err != nil {
			return nil, err
		}
		said, _ := rowName(cost.ByTask, row.Key)
		quantity, unit := consumedQuantity(row)
		paid := m.plainAmount(row.Cost)
		waste, recoverable := m.wastedAmounts(row)
		records = append(records, []string{
			paid, provider, textCell(provider + " " + o.Name), textCell(r.Currency), to, from,
			"Usage", "", textCell("Accelerators, processors and memory held by " + said), to, from, quantity, unit,
			paid, paid, provider, paid, quantity, unit, provider,
			provider, textCell(resourceID(row.Key)), textCell(row.Key.Task), textCell(row.Key.Kind), "AI and Machine Learning", "Training",
			textCell(row.Key.Namespace), textCell(row.Key.Namespace),
			tags, row.CPUHours.StringFixedBank(3), row.MemoryGiBHours.StringFixedBank(3), recoverable,
			formatRatio(row.Utilization), waste,
		})
	}
	return writeCSV(records)
}

// consumedQuantity is what a charge is for: accelerators, or processors where none were held.
func consumedQuantity(row cost.Row) (quantity, unit string) {
	held := func(hours decimal.Decimal) string { return hours.StringFixedBank(3) }
	if row.AcceleratorHours.IsPositive() {
		return held(row.AcceleratorHours), "Accelerator-Hours"
	}
	return held(row.CPUHours), "Core-Hours"
}

// resourceID names a task among all.
func resourceID(k cost.Key) string {
	return strings.Join([]string{clipName(k.Namespace), clipName(k.Kind), clipName(k.Task)}, "/")
}

// focusTags are the team and the user, under a prefix of ours, as the specification asks of tags that users did not define.
func focusTags(k cost.Key) (string, error) {
	set := map[string]string{}
	for tag, value := range map[string]string{"tideline.io/team": k.Team, "tideline.io/user": k.User} {
		if value != "" {
			set[tag] = value
		}
	}
	content, err := json.Marshal(set)
	return string(escapeJSON(content)), err
}
