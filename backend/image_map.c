#include <elf.h>
#include <libelf.h>
#include <string.h>

#include "backend/image_sections.h"

// Where a section's contents go.
typedef struct target_t {
  const char* name;
  size_t record; // bytes
  const void** data;
  size_t* count;
  bool found;
} target_t;

// The fields of the ELF header that libelf would trust, checked on the mapping itself. The section table has to be
// aligned so that libelf reads it in place.
static const char* header_fault(const weft_mapping_t* mapping) {
  Elf64_Ehdr header;
  if (mapping->size < sizeof(header)) return "it is shorter than an ELF header";
  memcpy(&header, mapping->data, sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is no ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "it is no little-endian 64-bit ELF file";
  if (header.e_ident[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT) return "unknown version of ELF";
  if (header.e_type != ET_NONE || header.e_machine != EM_NONE) return "it is an ELF file for another machine";
  if (header.e_phnum) return "it has program headers";
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !header.e_shnum) return "it has no sections";
  if (header.e_shoff % WEFT_IMAGE_ALIGNMENT) return "its section table is not aligned";
  if (header.e_shoff > mapping->size || (mapping->size - header.e_shoff) / sizeof(Elf64_Shdr) < header.e_shnum)
    return "its section table is cut off";
  if (header.e_shstrndx == SHN_UNDEF || header.e_shstrndx >= header.e_shnum) return "it has no section names";
  return NULL;
}

static weft_status_t take_section(const weft_mapping_t* mapping, const Elf64_Shdr* header, const char* name,
                                  target_t* targets, size_t target_count) {
  for (size_t t = 0; t < target_count; ++t) {
    target_t* target = &targets[t];
    if (strcmp(name, target->name) != 0) continue;
    if (target->found) return weft_error(INVALID_INPUT, "section %s appears twice", name);
    if (header->sh_type != SHT_PROGBITS) return weft_error(INVALID_INPUT, "section %s holds no data", name);
    if (header->sh_offset % WEFT_IMAGE_ALIGNMENT)
      return weft_error(INVALID_INPUT, "section %s is not aligned to %d bytes", name, WEFT_IMAGE_ALIGNMENT);
    if (header->sh_size % target->record)
      return weft_error(INVALID_INPUT, "section %s has %llu bytes, not a multiple of its records' %zu", name,
                        (unsigned long long)header->sh_size, target->record);
    *target->data = mapping->data + header->sh_offset;
    *target->count = header->sh_size / target->record;
    target->found = true;
  }
  return weft_ok();
}

static weft_status_t take_sections(const weft_mapping_t* mapping, Elf* elf, target_t* targets, size_t target_count) {
  size_t count = 0, names = 0;
  if (elf_getshdrnum(elf, &count) || elf_getshdrstrndx(elf, &names))
    return weft_error(INVALID_INPUT, "unreadable ELF: %s", elf_errmsg(-1));
  for (size_t s = 1; s < count; ++s) {
    Elf_Scn* scn = elf_getscn(elf, s);
    const Elf64_Shdr* header = scn ? elf64_getshdr(scn) : NULL;
    if (!header) return weft_error(INVALID_INPUT, "unreadable ELF section %zu: %s", s, elf_errmsg(-1));
    if (header->sh_type == SHT_NOBITS || header->sh_offset > mapping->size ||
        mapping->size - header->sh_offset < header->sh_size)
      return weft_error(INVALID_INPUT, "ELF section %zu reaches beyond the end of the file", s);
    const char* name = elf_strptr(elf, names, header->sh_name);
    if (!name) return weft_error(INVALID_INPUT, "ELF section %zu has no name: %s", s, elf_errmsg(-1));
    WEFT_RETURN_IF_ERROR(take_section(mapping, header, name, targets, target_count));
  }
  for (size_t t = 0; t < target_count; ++t)
    if (!targets[t].found) return weft_error(INVALID_INPUT, "section %s is missing", targets[t].name);
  return weft_ok();
}

static weft_status_t take_apart(weft_image_t* image) {
  const char* fault = header_fault(&image->mapping);
  if (fault) return weft_error(INVALID_INPUT, "not a wafer image: %s", fault);
  const weft_image_header_t* header = NULL;
  size_t header_count = 0;
  target_t targets[] = {
      {WEFT_IMAGE_HEADER_SECTION, sizeof(*header), (const void**)&header, &header_count, false},
      {WEFT_IMAGE_MACHINE_SECTION, 1, (const void**)&image->machine_xml, &image->machine_xml_size, false},
      {WEFT_IMAGE_DEFECTS_SECTION, 1, (const void**)&image->defects_text, &image->defects_text_size, false},
#define X(field, type, section) {section, sizeof(type), (const void**)&image->field, &image->field##_count, false},
      WEFT_IMAGE_TABLES(X)
#undef X
  };
  if (elf_version(EV_CURRENT) == EV_NONE) return weft_error(INTERNAL, "libelf: %s", elf_errmsg(-1));
  // The mapping is read-only; libelf doesn't write to memory that it was given to read.
  Elf* elf = elf_memory((char*)image->mapping.data, image->mapping.size);
  if (!elf) return weft_error(INVALID_INPUT, "unreadable ELF: %s", elf_errmsg(-1));
  weft_status_t status = take_sections(&image->mapping, elf, targets, sizeof(targets) / sizeof(targets[0]));
  elf_end(elf);
  WEFT_RETURN_IF_ERROR(status);
  if (header_count != 1) return weft_error(INVALID_INPUT, "section " WEFT_IMAGE_HEADER_SECTION " holds no one record");
  image->header = *header;
  return weft_ok();
}

weft_status_t weft_image_map(weft_allocator_t allocator, const char* path, weft_image_t* out_image) {
  memset(out_image, 0, sizeof(*out_image));
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &out_image->mapping));
  weft_status_t status = take_apart(out_image);
  if (!status) status = weft_image_verify(allocator, out_image);
  if (!status) return weft_ok();
  weft_image_unmap(out_image);
  return weft_status_annotate(status, "%s", path);
}

void weft_image_unmap(weft_image_t* image) {
  if (image->mapping.data) weft_file_unmap(&image->mapping);
  memset(image, 0, sizeof(*image));
}

const char* weft_image_string(const weft_image_t* image, uint32_t offset) {
  return offset < image->strings_count ? image->strings + offset : "";
}

void weft_image_tile_program(const weft_image_t* image, const weft_image_tile_t* tile, uint32_t* out_words) {
  const weft_image_program_t* program = &image->programs[tile->program];
  memcpy(out_words, image->code + program->code, program->code_words * sizeof(uint32_t));
  for (uint32_t p = 0; p < program->patch_count; ++p)
    out_words[image->patches[program->patches + p]] = image->params[tile->params + p];
}
