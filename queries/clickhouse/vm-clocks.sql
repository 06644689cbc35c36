-- vm-clocks: each vCPU's clock against the host's, where it is known from, and how sure that is
-- guest TSC = host TSC * scale + offset, from time_ns on (NULL: from the start). observations: guest
-- TSC packets that confirm it; worst_residual_tsc: the largest deviation of one of them, in TSC ticks;
-- slack_tsc: the offset is not further off than that (0: exact).
SELECT trace, machine, vcpu, vmcs, HEX_OF(vmcs) AS vmcs_hex, time_ns, offset, offset_hex, scale, ratio,
	frac_bits, source,
	slack_tsc, observations, worst_residual_tsc, worst_residual_ns
FROM vm_clocks
ORDER BY trace, UP(machine), UP(vcpu), UP(tsc), id;
