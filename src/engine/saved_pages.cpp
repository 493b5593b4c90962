// The part of what is saved that is keys and values.
#include <cstring>
#include <string>

#include "engine/saved_format.h"
#include "kernels/quantized_kv.h"

namespace inlay {
namespace {

// Keys or values of one head of a layer, 16 tokens.
struct Plane {
    size_t offset;  // bytes from the page, or in the array of exact tiles
    size_t parameters_offset;
    size_t parameter_bytes;
    KvType type;
    size_t dim;
    bool is_keys;
};

// Calls visit(plane) for those that lie in a page of the group or, for groups of exact pages, in all pages of the form
// one after the other. Takes no memory: a host's buffer that is written half is none.
template <typename Visit>
void for_each_plane(const ModelSpec& spec, const KvLayout& layout, size_t group, const Visit& visit) {
    const KvSpan span = layout.groups[group].span;
    const bool is_exact = layout.groups[group].layers.empty();
    for (size_t layer = 0; layer < layout.places.size(); ++layer) {
        const KvLayout::Place& place = layout.places[layer];
        const bool is_there = span == KvSpan::kOpenBlock ||
                              (span == KvSpan::kFirstBlock ? layout.keeps_first_exact(layer) : place.group == group);
        for (size_t head = 0; is_there && head < spec.n_kv_heads; ++head) {
            if (is_exact) {
                const size_t offset = layout.exact_offset(layer, head);
                visit(Plane{offset, 0, 0, kernels::exact_type(layout.key_type), spec.head_dim, true});
                visit(Plane{offset + place.exact_key_bytes, 0, 0, kernels::exact_type(layout.value_type),
                            spec.value_dim, false});
            } else {
                visit(Plane{layout.key_offset(layer, head), layout.key_parameters_offset(layer, head),
                            place.key_parameter_bytes, layout.key_type, spec.head_dim, true});
                visit(Plane{layout.value_offset(layer, head), layout.value_parameters_offset(layer, head),
                            place.value_parameter_bytes, layout.value_type, spec.value_dim, false});
            }
        }
    }
}

template <typename Bits>
bool all_finite(const std::byte* values, size_t n, Bits exponent) {
    bool finite = true;
    for (size_t i = 0; i < n; ++i) {
        Bits bits;
        std::memcpy(&bits, values + i * sizeof bits, sizeof bits);
        finite &= (bits & exponent) != exponent;
    }
    return finite;
}

constexpr uint16_t kHalfExponent = 0x7c00;

// The unit of minima is at most so many of scales: integers made of codes must stay what kernels expect.
bool is_valid_minimum_unit(const std::byte* parameters) {
    uint16_t unit;
    std::memcpy(&unit, parameters + sizeof unit, sizeof unit);
    return static_cast<float>(unit) <= kernels::QuantizedKv::kLargestMinimumUnit;
}

bool is_valid(const Plane& plane, const std::byte* page) {
    const size_t n = plane.dim * kBlockTokens;
    const std::byte* values = page + plane.offset;
    const std::byte* parameters = page + plane.parameters_offset;
    switch (plane.type) {
        case KvType::kF32:
            return all_finite<uint32_t>(values, n, 0x7f800000);
        case KvType::kF16:
            return all_finite<uint16_t>(values, n, kHalfExponent);
        case KvType::kBf16:
            return all_finite<uint16_t>(values, n, 0x7f80);
        default:
            break;
    }
    if (plane.type == KvType::kInt4 && plane.is_keys)
        return all_finite<uint16_t>(parameters, 1, kHalfExponent) && is_valid_minimum_unit(parameters);
    return all_finite<uint16_t>(parameters, plane.parameter_bytes / sizeof(uint16_t), kHalfExponent);
}

// Pages in which a block of the group lies: the first of them and how many.
struct PageGroups {
    size_t first;
    size_t n;
};

PageGroups page_groups(const KvLayout& layout, size_t group) {
    switch (layout.groups[group].span) {
        case KvSpan::kFirstBlock:
            return {layout.first_page_group(), layout.n_first_pages};
        case KvSpan::kOpenBlock:
            return {layout.open_page_group(), layout.n_open_pages};
        default:
            return {group, 1};
    }
}

}  // namespace

const std::byte* SavedPages::page(const Sequence& sequence, size_t group, size_t block) {
    const size_t n_computed = sequence.n_computed();
    const std::byte* page = sequence.pages(group)[block];
    const PageGroups groups = page_groups(layout_, group);
    if ((block + 1) * kBlockTokens <= n_computed && !layout_.groups[group].layers.empty()) return page;
    // The array of an exact form may end inside its last page.
    if (group == groups.first) {
        for (size_t i = 0; i < groups.n; ++i)
            std::memcpy(copy_.data() + i * layout_.page_bytes, sequence.pages(group + i)[block], layout_.page_bytes);
        clear_positions(group, std::min(kBlockTokens, n_computed - block * kBlockTokens));
    }
    return copy_.data() + (group - groups.first) * layout_.page_bytes;
}

void SavedPages::clear_positions(size_t first_group, size_t n_in_block) {
    size_t end = 0;
    for_each_plane(spec_, layout_, first_group, [&](const Plane& plane) {
        const size_t element = plane.type == KvType::kF32 ? sizeof(float) : sizeof(uint16_t);
        std::byte* values = copy_.data() + plane.offset;
        const size_t n_cleared = (kBlockTokens - n_in_block) * element;
        if (plane.is_keys) {
            for (size_t d = 0; d < plane.dim; ++d)
                std::memset(values + (d * kBlockTokens + n_in_block) * element, 0, n_cleared);
        } else {
            std::memset(values + n_in_block * plane.dim * element, 0, n_cleared * plane.dim);
        }
        end = std::max(end, plane.offset + kBlockTokens * plane.dim * element);
    });
    if (!layout_.groups[first_group].layers.empty()) return;
    const size_t n_bytes = page_groups(layout_, first_group).n * layout_.page_bytes;
    std::memset(copy_.data() + end, 0, n_bytes - end);
}

void check_values(const ModelSpec& spec, const KvLayout& layout, size_t group, const std::byte* page) {
    if (group != page_groups(layout, group).first) return;
    for_each_plane(spec, layout, group, [&](const Plane& plane) {
        if (!is_valid(plane, page))
            throw_damaged("a block of group " + std::to_string(group) + " holds values that are no finite numbers");
    });
}

}  // namespace inlay
